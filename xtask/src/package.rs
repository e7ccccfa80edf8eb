//! `cargo xtask package`: what is published can be: it says what it is, packs in the order of its dependencies, and holds its Rust version.

use std::{error::Error, path::Path};

use cargo_metadata::{Metadata, Package, semver::Version};

use crate::{
    cargo,
    report::{Report, Verdict},
};

/// Runs everything.
pub(crate) fn run(root: &Path, report: &mut Report) {
    report.stage("manifests", "what is published says what it is, and nothing below it needs a newer Rust", || {
        let metadata = cargo::metadata(root)?;
        let mut found: Vec<_> = published(&metadata).flat_map(silent).collect();
        let least = published(&metadata).find_map(|package| package.rust_version.as_ref());
        found.extend(least.into_iter().flat_map(|least| {
            let newer = metadata.packages.iter().filter(|package| package.rust_version.as_ref().is_some_and(|needs| needs > least));
            newer.map(move |package| format!("{} {} needs a newer Rust than {least}, which is promised", package.name, package.version))
        }));
        Ok(Verdict::check(found))
    });
    report.stage("package", "every crate packs, in the order of dependencies", || -> Result<Verdict, Box<dyn Error>> {
        let metadata = cargo::metadata(root)?;
        let mut command = cargo::command(root, &["package", "--no-verify", "--allow-dirty", "--quiet"]);
        for package in published(&metadata) {
            command.args(["-p", package.name.as_str()]);
        }
        Ok(Verdict::child(&cargo::run(&mut command)?))
    });
}

fn published(metadata: &Metadata) -> impl Iterator<Item = &Package> {
    let members = metadata.workspace_packages().into_iter();
    members.filter(|package| package.publish.as_ref().is_none_or(|registries| !registries.is_empty()))
}

/// What a registry, or who looks there, would miss.
fn silent(package: &Package) -> Vec<String> {
    let fields = [
        ("description", package.description.is_some()),
        ("license", package.license.is_some()),
        ("repository", package.repository.is_some()),
        ("rust-version", package.rust_version.as_ref().is_some_and(|version| *version > Version::new(1, 0, 0))),
        ("authors", !package.authors.is_empty()),
    ];
    fields.iter().filter(|(_, there)| !there).map(|(field, _)| format!("{}: `{field}` is missing", package.name)).collect()
}
