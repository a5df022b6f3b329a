//! What names stand for in a body: registers, special registers, variables.

use super::PtxError;
use super::lower::Lowering;
use super::scope::Variable;
use super::syntax::{Declaration, DeclaredSpace, Kind, Type};
use crate::code::{Constant, MULTIPROCESSORS, Register, Space};

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named {
    /// A register of so many bits.
    Register(Register, u32),
    /// A special register of so many bits.
    Constant(Constant, u32),
    /// A special register of so many bits that grows with time.
    Clock(u32),
    /// A variable.
    Variable(Variable),
}

impl<'m> Lowering<'m> {
    /// What a name stands for, from the innermost scope outwards.
    pub(super) fn resolve(&mut self, name: &'m str) -> Result<Named, PtxError> {
        for index in (0..self.frame.scopes.len()).rev() {
            let Some(scope) = self.frame.scopes.get(index) else { continue };
            if let Some(&(register, bits)) = scope.registers.get(name) {
                return Ok(Named::Register(register, bits));
            }
            if let Some(&variable) = scope.variables.get(name) {
                return Ok(Named::Variable(variable));
            }
            if let Some(ty) = scope.declared_type(name) {
                let register = self.fresh_of(ty)?;
                if let Some(scope) = self.frame.scopes.get_mut(index) {
                    scope.registers.insert(name, (register, ty.bits));
                }
                return Ok(Named::Register(register, ty.bits));
            }
        }
        if let Some(special) = special(name, self.cluster) {
            return Ok(special);
        }
        self.module_variable(name)
    }

    fn module_variable(&self, name: &str) -> Result<Named, PtxError> {
        let module = self.module;
        if let Some(&address) = module.addresses.get(name) {
            let (space, bytes) = (Space::Global, 0);
            return Ok(Named::Variable(Variable { space, address, bytes }));
        }
        if let Some(&address) = self.shared.of_module.get(name) {
            let (space, bytes) = (Space::Shared, 0);
            return Ok(Named::Variable(Variable { space, address, bytes }));
        }
        let declared = module.source.variables.iter().find(|d| d.name == name);
        Err(self.error(match declared {
            Some(Declaration { is_extern: true, .. }) => format!("`{name}` is defined elsewhere"),
            Some(Declaration { space: DeclaredSpace::Local, .. }) => {
                format!("`{name}` in local memory outside of a function is not supported")
            }
            _ => format!("`{name}` is not declared"),
        }))
    }

    /// A new register for values of a type.
    pub(super) fn fresh_of(&mut self, ty: Type) -> Result<Register, PtxError> {
        match ty {
            Type { kind: Kind::Predicate, .. } => self.fresh(1),
            Type { bits: 128, .. } => Err(self.error("128-bit registers are not supported")),
            Type { bits, .. } => self.fresh(bits),
        }
    }
}

/// Special registers of a kernel with clusters of that size, where it says so.
fn special(name: &str, cluster: Option<[u32; 3]>) -> Option<Named> {
    let dimension = |suffix: &str| match suffix {
        "x" => Some(0),
        "y" => Some(1),
        "z" => Some(2),
        _ => None,
    };
    let word = |constant| Some(Named::Constant(constant, 32));
    if let Some((vector, suffix)) = name.split_once('.') {
        let dimension = dimension(suffix)?;
        return match vector {
            "%tid" => word(Constant::Thread(dimension)),
            "%ntid" => word(Constant::BlockSize(dimension)),
            "%ctaid" => word(Constant::Block(dimension)),
            "%nctaid" => word(Constant::GridSize(dimension)),
            "%clusterid" => word(Constant::Cluster(dimension)),
            "%nclusterid" => word(Constant::Clusters(dimension)),
            "%cluster_ctaid" => word(Constant::ClusterBlock(dimension)),
            "%cluster_nctaid" => {
                let blocks = cluster.and_then(|size| size.get(usize::from(dimension)).copied());
                word(Constant::Bits(blocks.unwrap_or(1).into()))
            }
            _ => None,
        };
    }
    match name {
        "%laneid" => word(Constant::Lane),
        "%warpid" => word(Constant::Warp),
        "%nwarpid" => word(Constant::Warps),
        "%lanemask_eq" => word(Constant::LanesEqual),
        "%lanemask_le" => word(Constant::LanesUpTo),
        "%lanemask_lt" => word(Constant::LanesBelow),
        "%lanemask_ge" => word(Constant::LanesFrom),
        "%lanemask_gt" => word(Constant::LanesAbove),
        "%dynamic_smem_size" => word(Constant::DynamicShared),
        "%total_smem_size" => word(Constant::TotalShared),
        "%smid" => word(Constant::Multiprocessor),
        "%nsmid" => word(Constant::Bits(MULTIPROCESSORS as u64)),
        "%cluster_ctarank" => word(Constant::ClusterRank),
        "%cluster_nctarank" => {
            let blocks = cluster.map_or(1, |size| size.iter().map(|&n| u64::from(n)).product());
            word(Constant::Bits(blocks))
        }
        "%is_explicit_cluster" => {
            Some(Named::Constant(Constant::Bits(cluster.is_some().into()), 1))
        }
        "%gridid" => Some(Named::Constant(Constant::Bits(0), 64)),
        "WARP_SZ" => word(Constant::Bits(32)),
        "%clock" | "%clock_hi" | "%globaltimer_lo" | "%globaltimer_hi" => Some(Named::Clock(32)),
        "%clock64" | "%globaltimer" => Some(Named::Clock(64)),
        _ => None,
    }
}
