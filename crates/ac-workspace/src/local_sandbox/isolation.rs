//! Who limits a command, and how far.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{LocalSandboxOptions, Supervisor};
use crate::{Confinement, FileLimit, Isolation, NetworkLimit, WorkspaceError, WorkspaceErrorKind as Kind, supervisor};

/// How commands of one sandbox are limited.
#[derive(Debug)]
pub(super) struct Limits {
    pub(super) confinement: Confinement,
    by: By,
    network: bool,
    required: bool,
    writable: Vec<PathBuf>,
    supervisor: Option<PathBuf>,
}

#[derive(Debug, PartialEq, Eq)]
enum By {
    Nobody,
    /// The supervisor asks the kernel.
    Kernel,
    Bubblewrap(PathBuf),
}

impl Limits {
    /// What the options ask for, as far as this machine can. Fails where the options say that it must.
    pub(super) fn find(options: &LocalSandboxOptions, root: &Path, scratch: Option<&Path>) -> Result<Self, WorkspaceError> {
        let supervisor = match &options.supervisor {
            Supervisor::Program(path) => Some(path.clone()),
            Supervisor::Auto if supervisor::answers() => Some(PathBuf::from("/proc/self/exe")),
            Supervisor::Auto | Supervisor::Off => None,
        };
        let supervised = supervisor.is_some() && cfg!(target_os = "linux");
        let bubblewrap = if options.isolation == Isolation::Off { None } else { bubblewrap() };
        let (files, tcp) = kernel();
        let by = match (options.isolation, bubblewrap) {
            (Isolation::Off, _) => By::Nobody,
            (_, Some(program)) => By::Bubblewrap(program),
            (_, None) if supervised && files => By::Kernel,
            (_, None) => By::Nobody,
        };
        let network = match (options.network, &by) {
            (true, _) | (false, By::Nobody) => NetworkLimit::Open,
            (false, By::Bubblewrap(_)) => NetworkLimit::Off,
            (false, By::Kernel) if tcp => NetworkLimit::TcpOff,
            (false, By::Kernel) => NetworkLimit::Open,
        };
        let limited = if by == By::Nobody { FileLimit::Open } else { FileLimit::WriteInside };
        let confinement = Confinement { supervised, files: limited, network };
        let short = limited == FileLimit::Open || (!options.network && network == NetworkLimit::Open);
        if options.isolation == Isolation::Required && short {
            return Err(WorkspaceError::new(
                Kind::Isolation,
                "commands cannot be isolated here: neither bubblewrap nor, with a supervisor, Landlock is available; install bubblewrap, \
                 call `supervisor::run_if_asked` in main, or lower the policy",
            ));
        }
        let mut writable = vec![root.to_owned()];
        writable.extend(scratch.map(ToOwned::to_owned));
        writable.extend(options.writable.iter().cloned());
        let required = options.isolation == Isolation::Required;
        Ok(Self { confinement, by, network: options.network, required, writable, supervisor })
    }

    /// Whether the program that runs tells a signal that ended the command as an exit code, as a shell does.
    pub(super) fn relays(&self) -> bool {
        matches!(self.by, By::Bubblewrap(_))
    }

    /// The whole command line for `sh -c command`, and whether a supervisor reads its standard input.
    pub(super) fn wrap(&self, command: &str, cwd: &Path) -> (Vec<OsString>, bool) {
        let mut line: Vec<OsString> = Vec::new();
        if let Some(program) = self.supervisor.as_ref().filter(|_| self.confinement.supervised) {
            line.extend([program.into(), supervisor::ASK.into()]);
            if self.by == By::Kernel {
                line.push("confined".into());
                line.extend(self.required.then(|| "required".into()));
                line.extend(self.network.then(|| "network".into()));
                line.extend(self.writable.iter().map(|path| {
                    let mut word = OsString::from("write=");
                    word.push(path);
                    word
                }));
            }
            line.push("--".into());
        }
        if let By::Bubblewrap(program) = &self.by {
            line.push(program.into());
            line.extend(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid"].map(Into::into));
            line.extend((!self.network).then(|| "--unshare-net".into()));
            for path in &self.writable {
                line.extend(["--bind".into(), path.into(), path.into()]);
            }
            line.extend(["--chdir".into(), cwd.into(), "--".into()]);
        }
        line.extend(["/bin/sh", "-c", command].map(Into::into));
        (line, self.confinement.supervised)
    }
}

/// Where bubblewrap is, if it works here: containers often have it and forbid what it needs.
fn bubblewrap() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let program = std::env::split_paths(&path).map(|folder| folder.join("bwrap")).find(|program| program.is_file())?;
    let mut probe = std::process::Command::new(&program);
    probe.args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--unshare-net", "--", "/bin/sh", "-c", ":"]);
    probe.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    probe.status().is_ok_and(|status| status.success()).then_some(program)
}

#[cfg(target_os = "linux")]
fn kernel() -> (bool, bool) {
    supervisor::can()
}

#[cfg(not(target_os = "linux"))]
fn kernel() -> (bool, bool) {
    (false, false)
}
