//! The Go client: oapi-codegen.

use std::fs;

use anyhow::Result;

use super::ClientFolder;
use crate::packages;

/// Generates the client and adds the library that it uses.
pub(super) const COMMANDS: &[&str] = &[
    "go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 \
     -generate types,client -package catraca -o catraca/client.gen.go openapi.json",
    "go get github.com/oapi-codegen/runtime@v1.8.0",
];
const MODULE: &str = "module clients\n\ngo 1.24\n";

pub(super) fn run(folder: &ClientFolder) -> Result<()> {
    packages::need(folder.context, "go", "golang-go")?;
    folder.write("go.mod", MODULE)?;
    folder.write("main.go", include_str!("main.go"))?;
    fs::create_dir_all(folder.path.join("catraca"))?;
    for command in COMMANDS {
        folder.run(command)?;
    }
    // The checkout around the folder may belong to another user, whom git does not trust.
    folder.run("go vet -buildvcs=false ./...")?;
    folder.run("go build -buildvcs=false -o program .")?;
    folder.call_server("./program")
}
