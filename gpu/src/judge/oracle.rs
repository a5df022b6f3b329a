//! The device code that kernels are judged with.

mod notes;
#[cfg(test)]
mod tests;

use std::cell::RefCell;

use sparserl_core::matrix::Scalar;
use sparserl_core::task::{Dtype, Precision};

use crate::compile::nvrtc::Cubin;
use crate::run::device::{
    Argument, Device, DeviceBuffer, DeviceError, Geometry, Kernel, LaunchError, Module, Stream,
};
use crate::run::device_csr::{DeviceCsr, longest_short_row};
pub(crate) use notes::{Noted, Notes, Verdict, When};

/// The source of the device code.
pub(crate) const ORACLE_SOURCE: &str =
    concat!(include_str!("../../cuda/oracle.cu"), include_str!("../../cuda/chain.cu"));
/// One of its kernels, to compile it by.
pub(crate) const ORACLE_KERNEL: &str = "digest";

/// Threads of a block, for all kernels.
const THREADS: u32 = 256;
/// Rows that a block takes at a time.
const ROWS: u64 = 8;
/// Columns that a warp takes at a time.
const TILE: u32 = 32;
/// Enough tiles side by side; a block goes on with the next ones.
const MOST_TILES: u32 = 64;
/// Of a sum in progress: high, low and magnitude.
const SUM_BYTES: usize = 3 * size_of::<f64>();
/// Regions that are digested by one launch.
const MOST_REGIONS: usize = 64;
/// Of a region that is digested: address, bytes, first chunk, place of its digest.
const REGION_WORDS: usize = 4;
/// Notes have room for so many regions at least: few kernels have more.
const FEWEST_PLACES: usize = 128;
/// Bytes that a block digests at a time.
const CHUNK: u64 = 1 << 16;
/// Nanoseconds for which a kernel that ends late waits: the next one has begun by then.
const LATENESS: u64 = 20_000;
/// Its blocks, at most: they leave room for those of the next.
const LATE_BLOCKS: u64 = 64;
/// Enough blocks to fill any device; each goes on with the next share of the work.
const MOST_BLOCKS: u64 = 4096;

/// Operands, reference products and digests, made on the device.
#[derive(Debug)]
pub(crate) struct Oracle {
    /// By the dense operands' type.
    fill: [Kernel; 4],
    corrupt: [Kernel; 4],
    thin: [Kernel; 4],
    gather: [Kernel; 4],
    products: Vec<ProductKernels>,
    /// Sums of slices: as many as any product needed so far.
    sums: RefCell<Option<DeviceBuffer>>,
    digest: Kernel,
    clear_digests: Kernel,
    compare_digests: Kernel,
    chain_link: Kernel,
    write_late: Kernel,
    /// Notes that nobody uses now.
    notes: RefCell<Option<Notes>>,
    device: Device,
}

/// Products in one precision.
#[derive(Debug)]
struct ProductKernels {
    precision: Precision,
    /// By the width of offsets.
    judge: [Kernel; 2],
    /// Likewise, for rows that were cut into slices.
    judge_long: [Kernel; 2],
    sum_slices: Kernel,
}

impl ProductKernels {
    fn load(module: &Module, precision: Precision) -> Result<Self, DeviceError> {
        let types = types(precision);
        let both = |name: &str| -> Result<[Kernel; 2], DeviceError> {
            let kernel = |offset: &str| module.kernel(&format!("{name}_{types}_{offset}"));
            Ok([kernel("u32")?, kernel("u64")?])
        };
        Ok(Self {
            precision,
            judge: both("judge")?,
            judge_long: both("judge_long")?,
            sum_slices: module.kernel(&format!("sum_slices_{types}"))?,
        })
    }
}

/// How kernels for a precision are called, after what they do.
fn types(precision: Precision) -> String {
    format!("{}_{}", precision.matrix(), precision.dense())
}

/// Which rows of a dense operand stay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Thinning {
    /// Two rows that do.
    pub(crate) kept: [u64; 2],
    /// Share of the others, from 0 to 1.
    pub(crate) share: f64,
}

/// Memory to be digested, as (address, bytes).
pub(crate) type Region = (u64, u64);

/// A product alpha · A · X + beta · Y₀ with its operands in place; X and Y₀ are of type `D`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product<'a, D: Scalar> {
    pub(crate) csr: &'a DeviceCsr,
    /// Columns of X.
    pub(crate) width: u32,
    pub(crate) dense: &'a DeviceBuffer,
    /// Not read when beta is 0.
    pub(crate) initial: &'a DeviceBuffer,
    pub(crate) alpha: D::Accumulator,
    pub(crate) beta: D::Accumulator,
}

impl Oracle {
    pub(crate) fn load(device: &Device, cubin: &Cubin) -> Result<Self, DeviceError> {
        let module = Module::load(device, cubin)?;
        let each = |name: &str| -> Result<[Kernel; 4], DeviceError> {
            let [f32, f64, f16, bf16] =
                Dtype::ALL.map(|dtype| module.kernel(&format!("{name}_{dtype}")));
            Ok([f32?, f64?, f16?, bf16?])
        };
        let products = Precision::ALL.map(|precision| ProductKernels::load(&module, precision));
        Ok(Self {
            fill: each("fill")?,
            corrupt: each("corrupt")?,
            thin: each("thin")?,
            gather: each("gather")?,
            products: products.into_iter().collect::<Result<_, _>>()?,
            sums: RefCell::new(None),
            digest: module.kernel(ORACLE_KERNEL)?,
            clear_digests: module.kernel("clear_digests")?,
            compare_digests: module.kernel("compare_digests")?,
            chain_link: module.kernel("chain_link")?,
            write_late: module.kernel("write_late")?,
            notes: RefCell::new(None),
            device: device.clone(),
        })
    }

    /// Asks for random numbers in [−1, 1) all over a buffer.
    pub(crate) fn fill<T: Scalar>(
        &self,
        stream: &Stream,
        buffer: &DeviceBuffer,
        seed: u64,
    ) -> Result<(), DeviceError> {
        elementwise::<T>(&self.fill[index(T::DTYPE)], stream, buffer, seed)
    }

    /// Asks for some elements of a buffer to be overwritten by what is no result.
    pub(crate) fn corrupt<T: Scalar>(
        &self,
        stream: &Stream,
        buffer: &DeviceBuffer,
        seed: u64,
    ) -> Result<(), DeviceError> {
        elementwise::<T>(&self.corrupt[index(T::DTYPE)], stream, buffer, seed)
    }

    /// Asks for all rows of a dense operand to become 0 but two and a random share of the others.
    pub(crate) fn thin<T: Scalar>(
        &self,
        stream: &Stream,
        buffer: &DeviceBuffer,
        width: u32,
        seed: u64,
        Thinning { share, kept: [first, last] }: Thinning,
    ) -> Result<(), DeviceError> {
        let elements = (buffer.len() / size_of::<T>()) as u64;
        if elements == 0 {
            return Ok(());
        }
        // Saturates.
        let threshold = (share * 2.0_f64.powi(64)) as u64;
        let arguments = [
            Argument::Buffer(buffer),
            Argument::U64(elements),
            Argument::U32(width),
            Argument::U64(seed),
            Argument::U64(threshold),
            Argument::U64(first),
            Argument::U64(last),
        ];
        let blocks = elements.div_ceil(u64::from(THREADS) * 4);
        enqueue(&self.thin[index(T::DTYPE)], stream, blocks, 1, &arguments)
    }

    /// Some rows of a dense operand, in this order. Waits for the stream.
    pub(crate) fn gather<T: Scalar>(
        &self,
        stream: &Stream,
        dense: &DeviceBuffer,
        width: u32,
        rows: &[u32],
    ) -> Result<Vec<T>, DeviceError> {
        let elements = rows.len() * width as usize;
        if elements == 0 {
            return Ok(Vec::new());
        }
        let row_indices = DeviceBuffer::from_bytes(&self.device, bytemuck::cast_slice(rows))?;
        let gathered = DeviceBuffer::new(&self.device, elements * size_of::<T>())?;
        let arguments = [
            Argument::Buffer(dense),
            Argument::U32(width),
            Argument::Buffer(&row_indices),
            Argument::U64(rows.len() as u64),
            Argument::Buffer(&gathered),
        ];
        let blocks = (elements as u64).div_ceil(u64::from(THREADS));
        enqueue(&self.gather[index(T::DTYPE)], stream, blocks, 1, &arguments)?;
        stream.synchronize()?;
        Ok(bytemuck::pod_collect_to_vec(&gathered.download()?))
    }

    /// Compares `result` with a product. Waits for the stream.
    pub(crate) fn judge<D: Scalar>(
        &self,
        stream: &Stream,
        product: Product<'_, D>,
        result: &DeviceBuffer,
    ) -> Result<Verdict, DeviceError> {
        let notes = self.notes(0)?;
        notes.clear_verdict(stream)?;
        self.enqueue_judgement(stream, product, result, &notes)?;
        let noted = notes.read()?;
        self.keep(notes);
        Ok(noted.verdict())
    }

    /// Asks for a comparison of `result` with a product, unless `notes` say that a region was
    /// changed.
    pub(crate) fn enqueue_judgement<D: Scalar>(
        &self,
        stream: &Stream,
        product: Product<'_, D>,
        result: &DeviceBuffer,
        notes: &Notes,
    ) -> Result<(), DeviceError> {
        let no_values = [Argument::U64(0); 2];
        self.multiply(stream, product, Argument::Buffer(result), no_values, notes.verdict())
    }

    /// A product's elements and the bounds on their errors. Waits for the stream.
    pub(crate) fn product<D: Scalar>(
        &self,
        stream: &Stream,
        product: Product<'_, D>,
    ) -> Result<(Vec<f64>, Vec<f64>), DeviceError> {
        let length = product.csr.rows * product.width as usize * size_of::<f64>();
        let values = DeviceBuffer::new(&self.device, length)?;
        let bounds = DeviceBuffer::new(&self.device, length)?;
        let into = [Argument::Buffer(&values), Argument::Buffer(&bounds)];
        self.multiply(stream, product, Argument::U64(0), into, Argument::U64(0))?;
        stream.synchronize()?;
        let download = |buffer: &DeviceBuffer| -> Result<Vec<f64>, DeviceError> {
            Ok(bytemuck::pod_collect_to_vec(&buffer.download()?))
        };
        Ok((download(&values)?, download(&bounds)?))
    }

    fn multiply<D: Scalar>(
        &self,
        stream: &Stream,
        product: Product<'_, D>,
        result: Argument<'_>,
        [values, bounds]: [Argument<'_>; 2],
        verdict: Argument<'_>,
    ) -> Result<(), DeviceError> {
        let Product { csr, width, dense, initial, alpha, beta } = product;
        let kernels = self.kernels(csr.dtype, D::DTYPE)?;
        let offsets = usize::from(csr.offsets_wide);
        let rows = csr.rows as u64;
        let arguments = [
            Argument::Buffer(&csr.offsets),
            Argument::Buffer(&csr.columns),
            Argument::Buffer(&csr.values),
            Argument::Buffer(dense),
            Argument::Buffer(initial),
            result,
            values,
            bounds,
            verdict,
            Argument::U64(rows),
            Argument::U32(width),
            factor::<D>(alpha),
            factor::<D>(beta),
        ];
        let tiles = width.div_ceil(TILE).clamp(1, MOST_TILES);
        let short = [&arguments[..], &[Argument::U64(longest_short_row(csr.nnz) as u64)]].concat();
        enqueue(&kernels.judge[offsets], stream, rows.div_ceil(ROWS), tiles, &short)?;
        let Some(slices) = &csr.slices else { return Ok(()) };

        let bytes = slices.count.saturating_mul(width as usize).saturating_mul(SUM_BYTES);
        let mut kept = self.sums.borrow_mut();
        let sums = match kept.take().filter(|sums| sums.len() >= bytes) {
            Some(sums) => sums,
            None => DeviceBuffer::new(&self.device, bytes)?,
        };
        let sums = kept.insert(sums);
        let count = slices.count as u64;
        let of_slices = [
            Argument::Buffer(&slices.bounds),
            Argument::U64(count),
            Argument::Buffer(&csr.columns),
            Argument::Buffer(&csr.values),
            Argument::Buffer(dense),
            verdict,
            Argument::U32(width),
            Argument::Buffer(sums),
        ];
        enqueue(&kernels.sum_slices, stream, count, tiles, &of_slices)?;
        let long = [
            Argument::Buffer(&slices.rows),
            Argument::U64(slices.row_count as u64),
            Argument::Buffer(sums),
        ];
        let elements = slices.row_count as u64 * u64::from(width);
        let blocks = elements.div_ceil(u64::from(THREADS));
        let long = [&arguments[..], &long].concat();
        enqueue(&kernels.judge_long[offsets], stream, blocks, 1, &long)
    }

    /// The kernels for a matrix and dense operands of these types.
    fn kernels(&self, matrix: Dtype, dense: Dtype) -> Result<&ProductKernels, DeviceError> {
        let wrong = |reason| DeviceError::WrongArguments { reason };
        let precision = Precision::new(matrix, dense, dense.accumulator());
        let precision = precision.map_err(|e| wrong(e.to_string()))?;
        let kernels = self.products.iter().find(|kernels| kernels.precision == precision);
        kernels.ok_or_else(|| wrong(format!("the oracle has no product in {precision}")))
    }

    /// Enqueues what links a launch that wrote `output` to the next one, which reads `input`, of
    /// elements of type `T`. Neither changes but for the sign of an element, where one is given.
    pub(crate) fn link<T: Scalar>(
        &self,
        stream: &Stream,
        output: &DeviceBuffer,
        input: &DeviceBuffer,
        negated: Option<usize>,
    ) -> Result<(), DeviceError> {
        if output.is_empty() || input.is_empty() {
            return Ok(());
        }
        let (word, flipped) = negated.map_or((0, 0), sign_bit::<T>);
        let arguments = [
            Argument::Buffer(output),
            Argument::Buffer(input),
            Argument::U32(0),
            Argument::U64(word),
            Argument::U32(flipped),
        ];
        let geometry = Geometry::linear(1, 1);
        launch(&self.chain_link, stream, geometry, &arguments)
    }

    /// Asks for a kernel that lets the next one in the stream begin at once, and ends long after;
    /// until then both operands hold other numbers.
    pub(crate) fn write_late(
        &self,
        stream: &Stream,
        input: &DeviceBuffer,
        output: &DeviceBuffer,
    ) -> Result<(), DeviceError> {
        let words = |buffer: &DeviceBuffer| (buffer.len() / size_of::<u32>()) as u64;
        let arguments = [
            Argument::Buffer(input),
            Argument::U64(words(input)),
            Argument::Buffer(output),
            Argument::U64(words(output)),
            Argument::U64(LATENESS),
        ];
        let blocks = words(input).max(words(output)).div_ceil(u64::from(THREADS) * 16);
        enqueue(&self.write_late, stream, blocks.min(LATE_BLOCKS), 1, &arguments)
    }

    /// Waits for everything on the device.
    pub(crate) fn wait(&self) -> Result<(), DeviceError> {
        self.device.synchronize()
    }

    /// Room for what a launch is found to do to so many regions. Who is done with it gives it back
    /// with [`keep`](Self::keep).
    pub(crate) fn notes(&self, places: usize) -> Result<Notes, DeviceError> {
        match self.notes.take().filter(|notes| notes.places() >= places) {
            Some(notes) => Ok(notes),
            None => Notes::new(&self.device, places.max(FEWEST_PLACES)),
        }
    }

    /// Keeps notes for whoever needs some next.
    pub(crate) fn keep(&self, notes: Notes) {
        self.notes.replace(Some(notes));
    }

    /// A hash of each region's bytes. Waits for the stream.
    pub(crate) fn digest(
        &self,
        stream: &Stream,
        regions: &[Region],
    ) -> Result<Vec<u64>, DeviceError> {
        if regions.is_empty() {
            return Ok(Vec::new());
        }
        let notes = self.notes(regions.len())?;
        let placed: Vec<_> = regions.iter().copied().zip(0..).collect();
        self.enqueue_digests(stream, &placed, &notes, When::Before)?;
        let noted = notes.read()?;
        self.keep(notes);
        Ok((0..regions.len()).map(|place| noted.digest(When::Before, place)).collect())
    }

    /// Asks for a hash of each region's bytes, each to be noted at a place of its own.
    pub(crate) fn enqueue_digests(
        &self,
        stream: &Stream,
        regions: &[(Region, usize)],
        notes: &Notes,
        when: When,
    ) -> Result<(), DeviceError> {
        let digests = notes.digests(when);
        for regions in regions.chunks(MOST_REGIONS) {
            let (table, chunks) = chunk_table(regions);
            let (table, count) = (Argument::Words(&table), Argument::U32(regions.len() as u32));
            enqueue(&self.clear_digests, stream, 1, 1, &[table, count, digests])?;
            let arguments = [table, count, Argument::U64(chunks), digests];
            enqueue(&self.digest, stream, chunks, 1, &arguments)?;
        }
        Ok(())
    }

    /// Asks whether regions have the same digests from before and after, which is noted with the
    /// verdict.
    pub(crate) fn enqueue_comparison(
        &self,
        stream: &Stream,
        regions: &[(Region, usize)],
        notes: &Notes,
    ) -> Result<(), DeviceError> {
        let [before, after] = [When::Before, When::After].map(|when| notes.digests(when));
        for regions in regions.chunks(MOST_REGIONS) {
            let (table, _) = chunk_table(regions);
            let (table, count) = (Argument::Words(&table), Argument::U32(regions.len() as u32));
            let arguments = [table, count, before, after, notes.verdict()];
            enqueue(&self.compare_digests, stream, 1, 1, &arguments)?;
        }
        Ok(())
    }
}

/// The word of 32 bits that has the sign of an element of type `T`, and its bit in it.
fn sign_bit<T: Scalar>(element: usize) -> (u64, u32) {
    let last_byte = (element + 1) * size_of::<T>() - 1;
    ((last_byte / 4) as u64, 0x80 << (8 * (last_byte % 4)))
}

/// What the device is told of at most [`MOST_REGIONS`] regions, and how many chunks they have.
fn chunk_table(regions: &[(Region, usize)]) -> (Vec<u64>, u64) {
    let mut chunks = 0;
    let row = |&((address, bytes), place): &(Region, usize)| {
        let first = chunks;
        chunks += bytes.div_ceil(CHUNK);
        [address, bytes, first, place as u64]
    };
    let mut table: Vec<u64> = regions.iter().flat_map(row).collect();
    table.resize(MOST_REGIONS * REGION_WORDS, 0);
    (table, chunks)
}

fn elementwise<T: Scalar>(
    kernel: &Kernel,
    stream: &Stream,
    buffer: &DeviceBuffer,
    seed: u64,
) -> Result<(), DeviceError> {
    let elements = (buffer.len() / size_of::<T>()) as u64;
    if elements == 0 {
        return Ok(());
    }
    let arguments = [Argument::Buffer(buffer), Argument::U64(elements), Argument::U64(seed)];
    enqueue(kernel, stream, elements.div_ceil(u64::from(THREADS) * 4), 1, &arguments)
}

/// Launches a kernel of the oracle. It is right by assumption: a launch that fails is the device's
/// failure.
fn enqueue(
    kernel: &Kernel,
    stream: &Stream,
    blocks: u64,
    layers: u32,
    arguments: &[Argument<'_>],
) -> Result<(), DeviceError> {
    let blocks = blocks.clamp(1, MOST_BLOCKS) as u32;
    let geometry =
        Geometry { grid: [blocks, layers, 1], block: [THREADS, 1, 1], dynamic_shared: 0 };
    launch(kernel, stream, geometry, arguments)
}

fn launch(
    kernel: &Kernel,
    stream: &Stream,
    geometry: Geometry,
    arguments: &[Argument<'_>],
) -> Result<(), DeviceError> {
    kernel.bind(geometry, arguments).and_then(|bound| bound.enqueue(stream)).map_err(|error| {
        match error {
            LaunchError::Device(error) => error,
            LaunchError::Refused { failure, .. } | LaunchError::Faulted { failure } => {
                DeviceError::Driver { call: "cuLaunchKernelEx", failure }
            }
            LaunchError::Arguments { .. } | LaunchError::ForeignBuffer { .. } => {
                DeviceError::WrongArguments { reason: error.to_string() }
            }
        }
    })
}

/// The place in [`Dtype::ALL`].
fn index(dtype: Dtype) -> usize {
    match dtype {
        Dtype::F32 => 0,
        Dtype::F64 => 1,
        Dtype::F16 => 2,
        Dtype::BF16 => 3,
    }
}

/// A factor of products with dense operands of type `D`, as a kernel's argument.
pub(crate) fn factor<D: Scalar>(value: D::Accumulator) -> Argument<'static> {
    match D::DTYPE.accumulator() {
        Dtype::F64 => Argument::F64(value.to_f64()),
        Dtype::F32 | Dtype::F16 | Dtype::BF16 => Argument::F32(value.to_f64() as f32),
    }
}
