package read

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"brine/bundle"
)

const plainConfigMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {key: value}\n"

func writeTo(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// readError is the error of reading one file or folder, "" without one.
func readError(t *testing.T, path string) string {
	t.Helper()
	b, err := Bundle(t.Context(), Options{Files: []string{path}})
	if err != nil {
		return err.Error()
	}
	if len(b.Objects) != 1 {
		t.Errorf("it has %d objects, want one", len(b.Objects))
	}
	return ""
}

func TestFoldersHoldRegularFiles(t *testing.T) {
	folder := t.TempDir()
	elsewhere := writeTo(t, filepath.Join(t.TempDir(), "elsewhere"), plainConfigMap)
	if err := os.Symlink(elsewhere, filepath.Join(folder, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := readError(t, folder); err != "" {
		t.Errorf("a link to a regular file: %s", err)
	}
	link := filepath.Join(t.TempDir(), "current")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	if err := readError(t, link); err != "" {
		t.Errorf("a link to the folder: %s", err)
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "fifo.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := readError(t, folder); !strings.Contains(err, "fifo.yaml") || !strings.Contains(err, "not a regular file") {
		t.Errorf("a FIFO: %q", err)
	}
}

// A link to a folder is not followed, so what it holds would be missing: all but the ..data
// that Kubernetes makes where it mounts a ConfigMap.
func TestLinksToFoldersAreNotPassedOver(t *testing.T) {
	folder, elsewhere := t.TempDir(), t.TempDir()
	writeTo(t, filepath.Join(folder, "a.yaml"), plainConfigMap)
	link := func(name string) {
		if err := os.Symlink(elsewhere, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("..data")
	if b, err := Bundle(t.Context(), Options{Files: []string{folder}, Recursive: true}); err != nil || len(b.Objects) != 1 {
		t.Errorf("..data: %v", err)
	}
	link("more")
	if err := readError(t, folder); err != "" {
		t.Errorf("folders are not asked for: %s", err)
	}
	_, err := Bundle(t.Context(), Options{Files: []string{folder}, Recursive: true})
	if err == nil || !strings.Contains(err.Error(), filepath.Join(folder, "more")+": this is a link to a folder") {
		t.Errorf("-R: %v", err)
	}
}

func TestFileThatIsTooLarge(t *testing.T) {
	path := writeTo(t, filepath.Join(t.TempDir(), "large.yaml"), plainConfigMap)
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skip(err) // it takes no room, where files may have holes
	}
	if err := readError(t, path); !strings.Contains(err, "large.yaml") || !strings.Contains(err, "larger than 256 MiB") {
		t.Errorf("it is read: %q", err)
	}
}

// What a folder has and is not read is named: its objects would be missing, and be pruned.
func TestWhatAFolderPassesOver(t *testing.T) {
	for _, c := range []struct {
		name      string
		files     []string // beside a.yaml
		named     []string // with -f, besides the folder
		recursive bool
		want      string // the warnings, of FOLDER
	}{
		{"nothing", []string{"b.txt", "README.md", ".git/config.yaml", "..2026/b.yaml", "pictures/x.png"}, nil, false, ""},
		{"capitals", []string{"B.YAML", "c.Yml", "d.JSON"}, nil, false, "FOLDER: not read: B.YAML, c.Yml, d.JSON (files end in .yaml, .yml, .json, .sls, in small letters: rename it, or name it itself with -f)"},
		{"folders", []string{"more/b.yaml", "deep/in/it/c.yml"}, nil, false, "FOLDER: not read: deep, more (-R reads folders in it, too)"},
		{"folders that are read", []string{"more/b.yaml"}, nil, true, ""},
		{"capitals below them", []string{"more/b.yaml", "more/C.YAML"}, nil, true, "FOLDER: not read: more/C.YAML (files end in"},
		{"named themselves", []string{"more/b.yaml", "C.YAML"}, []string{"more", "C.YAML"}, false, ""},
		{"many", []string{"a1/x.yaml", "a2/x.yaml", "a3/x.yaml", "a4/x.yaml", "a5/x.yaml", "a6/x.yaml"}, nil, false, "FOLDER: not read: a1, a2, a3, a4, a5 and 1 more (-R"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			writeTo(t, filepath.Join(folder, "a.yaml"), plainConfigMap)
			for i, name := range c.files {
				path := filepath.Join(folder, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				writeTo(t, path, strings.ReplaceAll(plainConfigMap, "name: a", "name: a"+strconv.Itoa(i)))
			}
			o := Options{Files: []string{folder + "/"}, Recursive: c.recursive}
			for _, name := range c.named {
				o.Files = append(o.Files, filepath.Join(folder, name))
			}
			b, err := Bundle(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(bundle.Problems(b.Warnings).Error(), folder+"/", "FOLDER")
			if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("warnings %q, want %q", got, c.want)
			}
		})
	}
	folder := t.TempDir()
	writeTo(t, filepath.Join(folder, "A.YAML"), plainConfigMap)
	if err := readError(t, folder); !strings.Contains(err, "no file in this folder ends in .yaml, .yml, .json, .sls; not read: A.YAML (") {
		t.Errorf("a folder with nothing else: %q", err)
	}
}
