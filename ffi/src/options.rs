//! Options, by keys that later versions may add to.

use std::ffi::{c_char, c_void};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sparserl_onnx_models::PolicySource;

use crate::status::Failure;
use crate::types;

/// The number from which keys are for plans.
const FIRST_OF_PLANS: i32 = 100;

/// Declares the keys by their names in the API.
macro_rules! keys {
    ($($variant:ident = $constant:ident,)*) => {
        /// A key of the API.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Key { $($variant,)* }

        impl Key {
            fn of(number: i32) -> Option<Self> {
                match number { $(types::$constant => Some(Self::$variant),)* _ => None }
            }

            /// Whether it is for contexts; the others are for plans.
            fn is_of_context(self) -> bool {
                let number = match self { $(Self::$variant => types::$constant,)* };
                number < FIRST_OF_PLANS
            }

            /// Its name in the header.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($constant),)* }
            }
        }
    };
}

keys! {
    Policy = SPARSERL_OPTION_POLICY,
    CacheFolder = SPARSERL_OPTION_CACHE_FOLDER,
    Device = SPARSERL_OPTION_DEVICE,
    Target = SPARSERL_OPTION_TARGET,
    Log = SPARSERL_OPTION_LOG,
    Server = SPARSERL_OPTION_SERVER,
    ExpectedCalls = SPARSERL_OPTION_EXPECTED_CALLS,
    Measure = SPARSERL_OPTION_MEASURE,
    Deadline = SPARSERL_OPTION_DEADLINE,
    MemoryLimit = SPARSERL_OPTION_MEMORY_LIMIT,
    Deterministic = SPARSERL_OPTION_DETERMINISTIC,
    ValuesVariable = SPARSERL_OPTION_VALUES_VARIABLE,
    TransposeToo = SPARSERL_OPTION_TRANSPOSE_TOO,
    Epilogue = SPARSERL_OPTION_EPILOGUE,
    EpilogueSource = SPARSERL_OPTION_EPILOGUE_SOURCE,
    EpilogueUser = SPARSERL_OPTION_EPILOGUE_USER,
    CheckPointers = SPARSERL_OPTION_CHECK_POINTERS,
    Columns = SPARSERL_OPTION_COLUMNS,
    Dense = SPARSERL_OPTION_DENSE,
    TransposedEpilogue = SPARSERL_OPTION_TRANSPOSED_EPILOGUE,
    TransposedEpilogueSource = SPARSERL_OPTION_TRANSPOSED_EPILOGUE_SOURCE,
    TransposedEpilogueUser = SPARSERL_OPTION_TRANSPOSED_EPILOGUE_USER,
}

/// Receives what the library has to say.
pub(crate) type LogFunction = Option<unsafe extern "C" fn(*const c_char, *mut c_void)>;

/// Where messages go.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Log {
    pub(crate) function: LogFunction,
    pub(crate) user: *mut c_void,
}

// SAFETY: the caller promises that the function may be called from any thread with this pointer.
unsafe impl Send for Log {}
// SAFETY: as above.
unsafe impl Sync for Log {}

/// What a context is made with.
#[derive(Clone, Debug)]
pub(crate) struct ContextOptions {
    pub(crate) policy: PolicySource,
    pub(crate) cache_folder: Option<PathBuf>,
    /// A device's number, −1 for none; absent for the first, if there is one.
    pub(crate) device: Option<i32>,
    pub(crate) target: Option<String>,
    pub(crate) log: Option<Log>,
    pub(crate) server: Option<PathBuf>,
}

/// What a plan is made with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlanOptions {
    pub(crate) expected_calls: u64,
    pub(crate) measure: Measure,
    /// For all of planning, in the background too.
    pub(crate) deadline: Option<Duration>,
    /// Bytes of device memory.
    pub(crate) memory_limit: Option<u64>,
    pub(crate) deterministic: bool,
    pub(crate) values_variable: bool,
    pub(crate) transpose_too: bool,
    pub(crate) epilogue: EpilogueOptions,
    /// The same for products with the transpose alone, where any of it was set.
    pub(crate) transposed_epilogue: EpilogueOptions,
    pub(crate) check_pointers: bool,
    /// Those of the dense operands, for SpMM; absent for SpMV.
    pub(crate) columns: Option<NonZeroU32>,
    pub(crate) dense: DenseForm,
}

/// What is said of an epilogue.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EpilogueOptions {
    /// The name of one that is ready, or `none`.
    pub(crate) name: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) user: Option<String>,
}

impl EpilogueOptions {
    /// An option of it that was set, if any was; `names` are those of its options.
    pub(crate) fn first_set(&self, names: &EpilogueKeys) -> Option<Key> {
        let EpilogueKeys { name, source, user } = *names;
        let set = [(&self.name, name), (&self.source, source), (&self.user, user)];
        set.into_iter().find(|(value, _)| value.is_some()).map(|(_, key)| key)
    }
}

/// The options that say what an epilogue is.
pub(crate) struct EpilogueKeys {
    pub(crate) name: Key,
    pub(crate) source: Key,
    pub(crate) user: Key,
}

/// Those of all products that have none of their own.
pub(crate) const EPILOGUE: EpilogueKeys =
    EpilogueKeys { name: Key::Epilogue, source: Key::EpilogueSource, user: Key::EpilogueUser };
/// Those of products with the transpose.
pub(crate) const TRANSPOSED_EPILOGUE: EpilogueKeys = EpilogueKeys {
    name: Key::TransposedEpilogue,
    source: Key::TransposedEpilogueSource,
    user: Key::TransposedEpilogueUser,
};

/// How the dense operands of SpMM lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DenseForm {
    /// Row-major, without gaps between rows.
    #[default]
    RowMajor,
    /// Row-major, with leading dimensions.
    Strided,
    /// Column-major, with leading dimensions.
    ColumnMajor,
}

impl DenseForm {
    const ALL: [Self; 3] = [Self::RowMajor, Self::Strided, Self::ColumnMajor];

    /// Its number in the header.
    pub(crate) fn number(self) -> i32 {
        match self {
            Self::RowMajor => types::SPARSERL_DENSE_ROW_MAJOR,
            Self::Strided => types::SPARSERL_DENSE_STRIDED,
            Self::ColumnMajor => types::SPARSERL_DENSE_COLUMN_MAJOR,
        }
    }
}

/// Whether programs are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Where the expected calls are worth it.
    Worthwhile,
    Never,
    Always,
}

/// Columns of dense operands, at most: bytes of a whole operand fit 64 bits.
const MOST_COLUMNS: u32 = 1 << 20;

/// Calls that are expected where nothing is said of them.
const USUAL_CALLS: u64 = 100_000;

impl Default for ContextOptions {
    fn default() -> Self {
        Self {
            policy: PolicySource::Learned,
            cache_folder: None,
            device: None,
            target: None,
            log: None,
            server: None,
        }
    }
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            expected_calls: USUAL_CALLS,
            measure: Measure::Worthwhile,
            deadline: None,
            memory_limit: None,
            deterministic: false,
            values_variable: false,
            transpose_too: false,
            epilogue: EpilogueOptions::default(),
            transposed_epilogue: EpilogueOptions::default(),
            check_pointers: true,
            columns: None,
            dense: DenseForm::default(),
        }
    }
}

/// What a handle of options stands for.
#[derive(Debug, Default)]
pub(crate) struct Options(Mutex<Values>);

#[derive(Clone, Debug, Default)]
struct Values {
    context: ContextOptions,
    plan: PlanOptions,
    /// Keys that were set and are for contexts, or for plans.
    of_context: Option<Key>,
    of_plan: Option<Key>,
}

impl Options {
    /// Sets an option to what lies at `value`.
    ///
    /// # Safety
    /// `size` bytes at `value` can be read; what they point to can be used as the option says.
    pub(crate) unsafe fn set(
        &self,
        key: i32,
        value: *const c_void,
        size: usize,
    ) -> Result<(), Failure> {
        let Some(key) = Key::of(key) else {
            return Err(Failure::argument(format_args!("there is no option {key}")));
        };
        if value.is_null() {
            return Err(Failure::null("value"));
        }
        // SAFETY: by the contract.
        let given = unsafe { Given::new(key, value, size) }?;
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A copy, so that a value that is refused changes nothing.
        let mut changed = values.clone();
        let Values { context, plan, of_context, of_plan } = &mut changed;
        match key {
            Key::Policy => {
                context.policy = match given.text()?.as_str() {
                    "learned" => PolicySource::Learned,
                    "cost" => PolicySource::Cost,
                    _ => PolicySource::Exported(given.path("learned, cost or a folder")?),
                };
            }
            Key::CacheFolder => {
                context.cache_folder = Some(given.path("the path of a folder")?);
            }
            Key::Device => {
                let device = given.i32()?;
                if device < -1 {
                    return Err(given.refused("a device's number, or -1 for none"));
                }
                context.device = Some(device);
            }
            Key::Target => {
                context.target = Some(given.text()?);
            }
            Key::Log => {
                context.log = Some(given.log()?).filter(|log| log.function.is_some());
            }
            Key::Server => {
                context.server = Some(given.path("the path of a program")?);
            }
            Key::ExpectedCalls => {
                plan.expected_calls = given.u64()?;
            }
            Key::Measure => {
                plan.measure = match given.i32()? {
                    0 => Measure::Never,
                    1 => Measure::Always,
                    -1 => Measure::Worthwhile,
                    _ => return Err(given.refused("0, 1 or -1")),
                };
            }
            Key::Deadline => {
                let seconds = Duration::try_from_secs_f64(given.f64()?);
                let seconds = seconds.map_err(|_| given.refused("seconds, at least 0"))?;
                plan.deadline = Some(seconds);
            }
            Key::MemoryLimit => {
                plan.memory_limit = Some(given.u64()?);
            }
            Key::Deterministic => {
                plan.deterministic = given.flag()?;
            }
            Key::ValuesVariable => {
                plan.values_variable = given.flag()?;
            }
            Key::TransposeToo => {
                plan.transpose_too = given.flag()?;
            }
            Key::Epilogue => {
                plan.epilogue.name = given.text_unless_empty()?;
            }
            Key::EpilogueSource => {
                plan.epilogue.source = given.text_unless_empty()?;
            }
            Key::EpilogueUser => {
                plan.epilogue.user = given.text_unless_empty()?;
            }
            Key::TransposedEpilogue => {
                plan.transposed_epilogue.name = given.text_unless_empty()?;
            }
            Key::TransposedEpilogueSource => {
                plan.transposed_epilogue.source = given.text_unless_empty()?;
            }
            Key::TransposedEpilogueUser => {
                plan.transposed_epilogue.user = given.text_unless_empty()?;
            }
            Key::CheckPointers => {
                plan.check_pointers = given.flag()?;
            }
            Key::Columns => {
                let columns = u32::try_from(given.u64()?).ok().and_then(NonZeroU32::new);
                let columns = columns.filter(|columns| columns.get() <= MOST_COLUMNS);
                plan.columns = Some(columns.ok_or_else(|| given.refused("1 to 1048576"))?);
            }
            Key::Dense => {
                let number = given.i32()?;
                let known = DenseForm::ALL.into_iter().find(|form| form.number() == number);
                plan.dense = known.ok_or_else(|| {
                    given.refused("SPARSERL_DENSE_ROW_MAJOR, _STRIDED or _COLUMN_MAJOR")
                })?;
            }
        }
        *(if key.is_of_context() { of_context } else { of_plan }) = Some(key);
        *values = changed;
        Ok(())
    }

    /// What was set for a context.
    pub(crate) fn context(&self) -> Result<ContextOptions, Failure> {
        let values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match values.of_plan {
            Some(key) => Err(misplaced(key, "a plan", "a context")),
            None => Ok(values.context.clone()),
        }
    }

    /// What was set for a plan.
    pub(crate) fn plan(&self) -> Result<PlanOptions, Failure> {
        let values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = values.of_context {
            return Err(misplaced(key, "a context", "a plan"));
        }
        let plan = values.plan.clone();
        if plan.columns.is_none() && plan.dense != DenseForm::RowMajor {
            return Err(Failure::argument(
                "SPARSERL_OPTION_DENSE is for matrices: set SPARSERL_OPTION_COLUMNS",
            ));
        }
        match plan.transposed_epilogue.first_set(&TRANSPOSED_EPILOGUE) {
            Some(key) if !plan.transpose_too => Err(Failure::argument(format_args!(
                "{} is for products with the transpose: set SPARSERL_OPTION_TRANSPOSE_TOO = 1",
                key.name()
            ))),
            _ => Ok(plan),
        }
    }
}

fn misplaced(key: Key, of: &str, given_to: &str) -> Failure {
    let name = key.name();
    Failure::argument(format_args!("{name} is an option of {of}, and is given to {given_to}"))
}

/// A value as it was given.
struct Given<'a> {
    key: Key,
    bytes: &'a [u8],
}

impl Given<'_> {
    /// # Safety
    /// `size` bytes at `value` can be read for as long as it is used.
    unsafe fn new(key: Key, value: *const c_void, size: usize) -> Result<Self, Failure> {
        // A negative length, as an integer without a sign.
        if size > isize::MAX as usize {
            let name = key.name();
            return Err(Failure::argument(format_args!("{name}: no value has {size} bytes")));
        }
        // SAFETY: by the contract, `set` refused NULL, and the slice is not too long for one.
        Ok(Self { key, bytes: unsafe { std::slice::from_raw_parts(value.cast(), size) } })
    }

    fn refused(&self, expected: &str) -> Failure {
        let name = self.key.name();
        Failure::argument(format_args!("{name}: expected {expected}"))
    }

    fn number<const N: usize>(&self, expected: &str) -> Result<[u8; N], Failure> {
        self.bytes.try_into().map_err(|_| {
            let name = self.key.name();
            let size = self.bytes.len();
            Failure::argument(format_args!("{name}: expected {expected}, given {size} bytes"))
        })
    }

    fn i32(&self) -> Result<i32, Failure> {
        Ok(i32::from_ne_bytes(self.number("an int32_t")?))
    }

    fn u64(&self) -> Result<u64, Failure> {
        Ok(u64::from_ne_bytes(self.number("a uint64_t")?))
    }

    fn f64(&self) -> Result<f64, Failure> {
        Ok(f64::from_ne_bytes(self.number("a double")?))
    }

    fn flag(&self) -> Result<bool, Failure> {
        match self.i32()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.refused("0 or 1")),
        }
    }

    /// A text with or without the NUL at its end.
    fn text(&self) -> Result<String, Failure> {
        let bytes = self.bytes.strip_suffix(b"\0").unwrap_or(self.bytes);
        match str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Ok(text.to_owned()),
            _ => Err(self.refused("a text in UTF-8 and its length")),
        }
    }

    /// A text, or nothing where it is empty.
    fn text_unless_empty(&self) -> Result<Option<String>, Failure> {
        Ok(Some(self.text()?).filter(|text| !text.is_empty()))
    }

    /// A path, which has a name.
    fn path(&self, expected: &str) -> Result<PathBuf, Failure> {
        match self.text()? {
            path if path.is_empty() => {
                Err(self.refused(&format!("{expected}, found an empty text")))
            }
            path => Ok(path.into()),
        }
    }

    fn log(&self) -> Result<Log, Failure> {
        if self.bytes.len() != size_of::<Log>() {
            return Err(self.refused("a sparserl_log"));
        }
        // SAFETY: as many bytes as a log has, written by the caller as one; every function pointer
        // and pointer is valid as such, null included.
        Ok(unsafe { self.bytes.as_ptr().cast::<Log>().read_unaligned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set<T>(options: &Options, key: i32, value: &T) -> Result<(), Failure> {
        // SAFETY: the value is as large as is said.
        unsafe { options.set(key, (&raw const *value).cast(), size_of::<T>()) }
    }

    #[test]
    fn values_are_taken_by_their_size_and_range() {
        let options = Options::default();
        set(&options, 100, &7_u64).unwrap();
        set(&options, 102, &0.5_f64).unwrap();
        set(&options, 105, &1_i32).unwrap();
        set(&options, 107, b"relu").unwrap();
        set(&options, 111, &32_u64).unwrap();
        let plan = options.plan().unwrap();
        assert_eq!((plan.expected_calls, plan.values_variable), (7, true));
        assert_eq!(plan.deadline, Some(Duration::from_millis(500)));
        assert_eq!(plan.epilogue.name.as_deref(), Some("relu"));
        assert_eq!(plan.columns, NonZeroU32::new(32));
        let text = |result: Result<(), Failure>| result.unwrap_err().text;
        assert_eq!(text(set(&options, 99, &0_i32)), "there is no option 99");
        assert_eq!(
            text(set(&options, 100, &7_i32)),
            "SPARSERL_OPTION_EXPECTED_CALLS: expected a uint64_t, given 4 bytes"
        );
        assert_eq!(
            text(set(&options, 104, &2_i32)),
            "SPARSERL_OPTION_DETERMINISTIC: expected 0 or 1"
        );
        assert!(text(set(&options, 102, &f64::NAN)).contains("seconds"));
        for columns in [0, u64::MAX] {
            let refused = "SPARSERL_OPTION_COLUMNS: expected 1 to 1048576";
            assert_eq!(text(set(&options, 111, &columns)), refused);
        }
        let refused =
            "SPARSERL_OPTION_DENSE: expected SPARSERL_DENSE_ROW_MAJOR, _STRIDED or _COLUMN_MAJOR";
        assert_eq!(text(set(&options, 112, &9_i32)), refused);
        assert!(text(set(&options, 107, b"a\0b\0")).contains("a text"));
        // What was refused changed nothing.
        assert_eq!(options.plan().unwrap(), plan);
        // SAFETY: NULL is refused.
        let null = unsafe { options.set(100, std::ptr::null(), 8) };
        assert_eq!(text(null), "value is NULL");
        // SAFETY: nothing is read of what cannot be so long.
        let negative = unsafe { options.set(107, (&raw const plan).cast(), -5_isize as usize) };
        assert_eq!(
            text(negative),
            "SPARSERL_OPTION_EPILOGUE: no value has 18446744073709551611 bytes"
        );
    }

    #[test]
    fn how_dense_operands_lie_is_for_matrices() {
        let options = Options::default();
        set(&options, 112, &1_i32).unwrap();
        let text = options.plan().unwrap_err().text;
        assert_eq!(text, "SPARSERL_OPTION_DENSE is for matrices: set SPARSERL_OPTION_COLUMNS");
        set(&options, 111, &8_u64).unwrap();
        assert_eq!(options.plan().unwrap().dense, DenseForm::Strided);
    }

    #[test]
    fn an_own_epilogue_of_the_transpose_takes_kernels_for_it() {
        for (key, name) in [(113, "EPILOGUE"), (114, "EPILOGUE_SOURCE"), (115, "EPILOGUE_USER")] {
            let options = Options::default();
            set(&options, key, b"some").unwrap();
            let text = options.plan().unwrap_err().text;
            let expected = format!(
                "SPARSERL_OPTION_TRANSPOSED_{name} is for products with the transpose: \
                 set SPARSERL_OPTION_TRANSPOSE_TOO = 1"
            );
            assert_eq!(text, expected);
            set(&options, 106, &1_i32).unwrap();
            let plan = options.plan().unwrap();
            assert_eq!(plan.epilogue, EpilogueOptions::default());
            assert_ne!(plan.transposed_epilogue, EpilogueOptions::default());
            // An empty text takes it back.
            set(&options, 106, &0_i32).unwrap();
            set(&options, key, b"").unwrap();
            assert_eq!(options.plan().unwrap(), PlanOptions::default());
        }
    }

    #[test]
    fn options_of_the_one_are_refused_for_the_other() {
        let options = Options::default();
        set(&options, 1, b"cost\0").unwrap();
        assert_eq!(options.context().unwrap().policy, PolicySource::Cost);
        let text = options.plan().unwrap_err().text;
        assert_eq!(
            text,
            "SPARSERL_OPTION_POLICY is an option of a context, and is given to a plan"
        );
        set(&options, 103, &1_u64).unwrap();
        assert!(options.context().is_err());
    }
}
