//! What a command may do, enforced by the kernel (Landlock).

use std::{ffi::OsString, io, os::unix::ffi::OsStrExt, path::PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, Scope,
    path_beneath_rules,
};

/// The newest rights that this code knows; the kernel's own, if it is older.
const KNOWN: ABI = ABI::V10;
/// Rights without which files count as open: before this version a file could be emptied.
const NEEDED: ABI = ABI::V3;

/// Devices that every program writes to.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// What the supervisor was told.
#[derive(Debug, Default)]
pub(super) struct Policy {
    /// Whether the kernel limits anything.
    confined: bool,
    /// Whether a kernel that cannot limit it ends the command.
    required: bool,
    network: bool,
    writable: Vec<PathBuf>,
}

impl Policy {
    /// Reads the words before `--`.
    pub(super) fn read(arguments: &mut impl Iterator<Item = OsString>) -> io::Result<Self> {
        let mut policy = Self::default();
        for word in arguments {
            match word.as_bytes() {
                b"--" => return Ok(policy),
                b"confined" => policy.confined = true,
                b"required" => policy.required = true,
                b"network" => policy.network = true,
                bytes => match bytes.strip_prefix(b"write=") {
                    Some(path) => policy.writable.push(PathBuf::from(std::ffi::OsStr::from_bytes(path))),
                    None => return Err(io::ErrorKind::InvalidInput.into()),
                },
            }
        }
        Err(io::ErrorKind::InvalidInput.into())
    }

    /// The words that [`Policy::read`] understands.
    pub(super) fn enforce(&self) -> Result<(), RulesetError> {
        if !self.confined {
            return Ok(());
        }
        let mut rules = Ruleset::default();
        if self.required {
            rules = rules.set_compatibility(CompatLevel::HardRequirement).handle_access(AccessFs::from_all(NEEDED))?;
            if !self.network {
                rules = rules.handle_access(AccessNet::from_all(ABI::V4))?;
            }
        }
        rules = rules.set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_all(KNOWN))?.scope(Scope::from_all(KNOWN))?;
        if !self.network {
            rules = rules.handle_access(AccessNet::from_all(KNOWN))?;
        }
        let all = AccessFs::from_all(KNOWN);
        rules
            .create()?
            .set_compatibility(CompatLevel::BestEffort)
            .add_rules(path_beneath_rules(["/"], AccessFs::from_read(KNOWN)))?
            .add_rules(path_beneath_rules(DEVICES, AccessFs::from_file(KNOWN)))?
            .add_rules(path_beneath_rules(&self.writable, all))?
            .restrict_self()
            .map(drop)
    }
}

/// Whether the kernel can limit files, and whether it can limit the network. Nothing is limited by asking.
pub(crate) fn can() -> (bool, bool) {
    let ask = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let files = ask().handle_access(AccessFs::from_all(NEEDED)).and_then(Ruleset::create).is_ok();
    let network = ask().handle_access(AccessNet::from_all(ABI::V4)).and_then(Ruleset::create).is_ok();
    (files, network)
}
