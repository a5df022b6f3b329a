//! The matrix in a `.tar` archive, such as those of the SuiteSparse collection, which hold it in a
//! folder of its name, beside right-hand sides and coordinates.

use std::borrow::ToOwned;
use std::format;
use std::io::Cursor;
use std::ops::Range;
use std::path::Path;
use std::string::String;
use std::vec::Vec;

use tar::Archive;

use super::{Format, MatrixFileErrorKind};

/// Members that a message names.
const SHOWN: usize = 12;

/// A matrix in an archive.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) format: Format,
    /// Where its bytes are in the archive.
    pub(super) bytes: Range<usize>,
}

/// Finds the matrix: the member that was asked for, else the one called like the archive, else the
/// one called like the folder that it lies in, else the only one. Also gives the names of the
/// others.
pub(super) fn choose(
    archive: &[u8],
    stem: Option<&str>,
    asked: Option<&str>,
) -> Result<(Member, Vec<String>), MatrixFileErrorKind> {
    let mut members = list(archive)?;
    let rank = |member: &Member| {
        let path = Path::new(&member.name);
        let own = stem_of(&member.name);
        let folder = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy());
        match asked {
            Some(asked) if member.name == asked || file_name(&member.name) == asked => 3,
            Some(_) => 0,
            None if Some(own) == stem => 2,
            None if folder.is_some_and(|folder| folder == own) => 1,
            None => 0,
        }
    };
    let best = members.iter().map(rank).max().ok_or(MatrixFileErrorKind::NoMember)?;
    let mut ranked = members.iter().enumerate().filter(|(_, member)| rank(member) == best);
    let names = || {
        let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
        listed(&names)
    };
    match (ranked.next(), ranked.next(), asked) {
        (Some(_), _, Some(asked)) if best < 3 => {
            Err(MatrixFileErrorKind::NotAMember { asked: asked.to_owned(), names: names() })
        }
        (Some((index, _)), None, _) => {
            let chosen = members.remove(index);
            Ok((chosen, members.into_iter().map(|member| member.name).collect()))
        }
        _ => Err(MatrixFileErrorKind::SeveralMembers { names: names() }),
    }
}

/// Names of members for a message of one line.
pub fn listed(names: &[impl AsRef<str>]) -> String {
    let shown: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    let more = names.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &more
}

/// The members that are called as matrices are.
fn list(archive: &[u8]) -> Result<Vec<Member>, MatrixFileErrorKind> {
    let mut tar = Archive::new(Cursor::new(archive));
    let mut members = Vec::new();
    for entry in tar.entries_with_seek().map_err(MatrixFileErrorKind::Archive)? {
        let entry = entry.map_err(MatrixFileErrorKind::Archive)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let Some(format) = Format::of_member(&name) else { continue };
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let start = usize::try_from(entry.raw_file_position()).unwrap_or(usize::MAX);
        let length = usize::try_from(entry.size()).unwrap_or(usize::MAX);
        let bytes = start..start.saturating_add(length);
        if archive.get(bytes.clone()).is_none() {
            let cut = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            return Err(MatrixFileErrorKind::Archive(cut));
        }
        members.push(Member { name, format, bytes });
    }
    Ok(members)
}

fn file_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// A file's name without folder and extension.
fn stem_of(name: &str) -> &str {
    let name = file_name(name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_some_members_of_many() {
        let all: Vec<String> = (0..3000).map(|at| format!("{at}.mtx")).collect();
        assert_eq!(listed(&all[..2]), "0.mtx, 1.mtx");
        let names = listed(&all);
        assert!(names.ends_with(", 11.mtx and 2988 more") && names.len() < 120, "{names}");
    }
}
