package catraca

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const repository = "../.."

// blockHead is what the code of the documents takes for granted.
const blockHead = `package main

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	catraca "catraca-go"
)

var (
	ctx    context.Context
	client *catraca.Client
	mux    *http.ServeMux
	r      *http.Request
	_      = slog.Warn
	_      = time.Second
)

func logIn(http.ResponseWriter, *http.Request)  {}
func pay(ctx context.Context, fence int64) error { return nil }
func main()                                      {}

func block() {
%s	%s = %s
}
`

var (
	goBlock     = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	declaration = regexp.MustCompile(`(?m)^([a-z]\w*(?:, \w+)*) := `)
	link        = regexp.MustCompile(`\]\(([^)#]+)`)
)

func readDocument(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, file))
	expect(t, err == nil, file, err)
	return string(text)
}

// programOf makes a block of a document a program that declares what the block leaves out, and uses
// what the block only declares.
func programOf(block string) string {
	block = strings.ReplaceAll(block, "import catraca \"catraca-go\"\n", "")
	used := []string{"ctx"}
	for _, names := range declaration.FindAllStringSubmatch(block, -1) {
		for _, name := range strings.Split(names[1], ", ") {
			if name != "_" {
				used = append(used, name)
			}
		}
	}
	blanks := strings.TrimSuffix(strings.Repeat("_, ", len(used)), ", ")
	return fmt.Sprintf(blockHead, block, blanks, strings.Join(used, ", "))
}

func TestTheGoOfTheDocumentsCompiles(t *testing.T) {
	module, err := filepath.Abs(".")
	expect(t, err == nil, "module", err)
	folder := t.TempDir()
	text := "module documents\n\ngo 1.22\n\nrequire catraca-go v0.0.0\n\nreplace catraca-go => " + module + "\n"
	expect(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte(text), 0o600) == nil, "go.mod", nil)
	count := 0
	for _, document := range []string{"docs/guide/clients.md", "sdk/go/README.md", "llms.txt"} {
		blocks := goBlock.FindAllStringSubmatch(readDocument(t, document), -1)
		expect(t, len(blocks) > 0, "no Go in", document)
		for _, block := range blocks {
			count++
			program := filepath.Join(folder, fmt.Sprintf("block%d", count), "main.go")
			expect(t, os.Mkdir(filepath.Dir(program), 0o700) == nil, "folder", program)
			expect(t, os.WriteFile(program, []byte(programOf(block[1])), 0o600) == nil, "write", program)
		}
	}
	vet := exec.Command("go", "vet", "./...")
	vet.Dir = folder
	output, err := vet.CombinedOutput()
	expect(t, err == nil, "go vet", string(output))
	t.Logf("%d blocks compile", count)
}

// llms.txt tells programs that write programs where the documents are.
func TestEveryLinkOfLlmsTxtExists(t *testing.T) {
	links := link.FindAllStringSubmatch(readDocument(t, "llms.txt"), -1)
	expect(t, len(links) > 10, "links", len(links))
	for _, found := range links {
		_, err := os.Stat(filepath.Join(repository, found[1]))
		expect(t, err == nil, "llms.txt", err)
	}
}
