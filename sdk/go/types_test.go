package catraca

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const typedProgram = `package main

import (
	"context"

	catraca "catraca-go"

	"types/gates"
)

func check(ctx context.Context, client *catraca.Client) {
	_, _ = client.CheckGate(ctx, gates.GATE{IP: "198.51.100.7"})
}

func main() {}
`

// The types are those that `catraca types --lang go` prints for a catalog with the gate `login`.
func TestAMisspeltGateDoesNotCompile(t *testing.T) {
	folder := t.TempDir()
	catalog := filepath.Join(folder, "catalog.toml")
	write := func(file, text string) {
		t.Helper()
		path := filepath.Join(folder, file)
		expect(t, os.MkdirAll(filepath.Dir(path), 0o700) == nil, "folder of", file)
		expect(t, os.WriteFile(path, []byte(text), 0o600) == nil, "write", file)
	}
	write("catalog.toml", testCatalog)
	program := os.Getenv("CATRACA_BIN")
	if program == "" {
		program = "catraca"
	}
	types, err := exec.Command(program, "types", "--lang", "go", "-c", catalog).Output()
	expect(t, err == nil, "catraca types", err)
	module, err := filepath.Abs(".")
	expect(t, err == nil, "module", err)
	write("go.mod", "module types\n\ngo 1.22\n\nrequire catraca-go v0.0.0\n\nreplace catraca-go => "+module+"\n")
	write("gates/gates.go", string(types))
	build := func(gate string) (string, error) {
		write("main.go", strings.ReplaceAll(typedProgram, "GATE", gate))
		build := exec.Command("go", "vet", ".")
		build.Dir = folder
		output, err := build.CombinedOutput()
		return string(output), err
	}
	output, err := build("Login")
	expect(t, err == nil, "the right name", output)
	output, err = build("Logn")
	expect(t, err != nil && strings.Contains(output, "undefined: gates.Logn"), "the misspelt name", output)
}
