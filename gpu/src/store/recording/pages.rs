//! Pages of a column, checked on their way to the reader.

use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// Refuses dictionaries that say they have more values than bytes: the reader of columns makes room
/// for all values before it reads the first.
pub(super) struct CheckedPages(pub(super) Box<dyn PageReader>);

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.0.get_next_page()?;
        if let Some(Page::DictionaryPage { buf, num_values, .. }) = &page
            && *num_values as usize > buf.len()
        {
            let (bytes, text) = (buf.len(), "a dictionary cannot have");
            return Err(ParquetError::General(format!(
                "{text} {num_values} values in {bytes} bytes"
            )));
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.0.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.0.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.0.at_record_boundary()
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

#[cfg(test)]
mod tests {
    use parquet::basic::Encoding;

    use super::*;

    struct One(Option<Page>);

    impl PageReader for One {
        fn get_next_page(&mut self) -> Result<Option<Page>> {
            Ok(self.0.take())
        }

        fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> Result<()> {
            Ok(())
        }
    }

    impl Iterator for One {
        type Item = Result<Page>;

        fn next(&mut self) -> Option<Self::Item> {
            self.get_next_page().transpose()
        }
    }

    #[test]
    fn a_dictionary_has_room_for_its_values() {
        for (num_values, is_read) in [(0, true), (8, true), (9, false), (u32::MAX, false)] {
            let buf = vec![0; 8].into();
            let page = Page::DictionaryPage {
                buf,
                num_values,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            let mut pages = CheckedPages(Box::new(One(Some(page))));
            assert_eq!(pages.get_next_page().is_ok(), is_read, "{num_values}");
        }
    }
}
