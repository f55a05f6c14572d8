//! What the running kernel has, by its own type information.

use crate::Refusal;
use libbpf_rs::btf::{Btf, types::Typedef};
use std::path::Path;

/// The kernel's type information.
pub(crate) struct Kernel {
    types: Btf<'static>,
}

impl Kernel {
    /// Reads it.
    pub(crate) fn read() -> Result<Self, Refusal> {
        let without = "this kernel has no type information (/sys/kernel/btf/vmlinux)";
        let remedy = "use a kernel built with CONFIG_DEBUG_INFO_BTF, as distributions build theirs";
        if !Path::new("/sys/kernel/btf/vmlinux").exists() {
            return Err(Refusal::with_remedy(without, remedy));
        }
        let types = Btf::from_vmlinux().map_err(|error| Refusal::with_remedy(format!("{without}: {error}"), remedy))?;
        Ok(Self { types })
    }

    /// Whether a tracepoint that a module may hold is in it, and the module is loaded.
    pub(crate) fn module_has_tracepoint(&self, module: &str, name: &str) -> bool {
        let types = std::fs::read(Path::new("/sys/kernel/btf").join(module)).unwrap_or_default();
        let wanted = format!("btf_trace_{name}\0");
        types.windows(wanted.len()).any(|text| text == wanted.as_bytes())
    }

    /// Whether a tracepoint is there.
    pub(crate) fn has_tracepoint(&self, name: &str) -> bool {
        self.types.type_by_name::<Typedef<'_>>(&format!("btf_trace_{name}")).is_some()
    }
}
