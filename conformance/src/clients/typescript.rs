//! The TypeScript client: openapi-fetch, with the types that openapi-typescript generates.

use anyhow::Result;

use super::ClientFolder;
use crate::packages;

/// Installs the packages and generates the types.
pub(super) const COMMANDS: &[&str] = &[
    "npm install openapi-fetch@0.17.0 openapi-typescript@7.13.0 typescript@5.9.3 \
     @types/node@20.19.0",
    "npx openapi-typescript openapi.json --output catraca.d.ts",
];
const PACKAGE: &str = "{ \"private\": true, \"type\": \"module\" }\n";

pub(super) fn run(folder: &ClientFolder) -> Result<()> {
    packages::need(folder.context, "node", "nodejs")?;
    packages::need(folder.context, "npm", "npm")?;
    folder.write("package.json", PACKAGE)?;
    folder.write("main.ts", include_str!("main.ts"))?;
    for command in COMMANDS {
        folder.run(command)?;
    }
    folder.run(
        "npx tsc --strict --noUncheckedIndexedAccess --target es2022 --module nodenext \
         --outDir out main.ts",
    )?;
    folder.call_server("node out/main.js")
}
