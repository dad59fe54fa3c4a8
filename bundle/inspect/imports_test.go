package inspect

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// Who runs brine status at night knows that it changes nothing: what writes is neither
// imported nor called.
func TestWritesNothing(t *testing.T) {
	writers := []string{"brine/bundle/apply", "brine/bundle/preview", "brine/bundle/run", "brine/bundle/write", "brine/inventory/admin", "k8s.io/client-go"}
	writing := []string{
		"Apply", "Create", "Delete", "DryUpdate", "MoveOwnership", "Patch", "Unstore", "Update", // of cluster.Client
		"Add", "BeginMove", "CopyHistory", "DeleteHistory", "Forget", "Receive", "Recover", "Rename", "Repair",
		"SaveFingerprints", "SaveKey", "SaveOrigins", "SaveRevision", "Take", "Trim", // of store
	}
	packages, err := parser.ParseDir(token.NewFileSet(), ".", func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0) //nolint:staticcheck // build tags do not matter
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for name, file := range packages["inspect"].Files {
		files++
		for _, i := range file.Imports {
			if path := strings.Trim(i.Path.Value, `"`); slices.ContainsFunc(writers, func(w string) bool { return path == w || strings.HasPrefix(path, w+"/") }) {
				t.Errorf("%s imports %s", name, path)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.SelectorExpr); ok && slices.Contains(writing, call.Sel.Name) {
				t.Errorf("%s calls %s", name, call.Sel.Name)
			}
			return true
		})
	}
	if files == 0 {
		t.Error("no file was looked at")
	}
}
