package clustertest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// devcluster is one that scripts/cluster runs for this process.
type devcluster struct {
	script     string
	base       string // holds the file "owner" and the directory "cluster"
	owner      *os.File
	kubeconfig string
}

const basePattern = "brine-clustertest-*"

// temporary is the folder of all packages: later a package's tests may have one of their own.
var temporary = os.TempDir()

func startDevcluster(args ...string) (*devcluster, error) {
	script, err := findScript()
	if err != nil {
		return nil, err
	}
	sweep(script)
	d := &devcluster{script: script}
	if d.base, err = os.MkdirTemp(temporary, basePattern); err != nil {
		return nil, err
	}
	if d.owner, err = own(d.base); err != nil {
		return nil, errors.Join(err, os.RemoveAll(d.base))
	}
	if version := os.Getenv("BRINE_TEST_KUBERNETES"); version != "" {
		args = append(args, "--kubernetes", version)
	}
	if n := os.Getenv("BRINE_TEST_APISERVERS"); n != "" {
		args = append(args, "--apiservers", n, "--balance", "request")
	}
	if d.kubeconfig, err = d.run("up", args...); err != nil {
		return nil, errors.Join(err, d.down())
	}
	return d, nil
}

// findScript looks upwards, as tests run in their package's directory.
func findScript() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		script := filepath.Join(dir, "scripts", "cluster")
		if _, err := os.Stat(script); err == nil {
			return script, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("scripts/cluster is in no directory above this one")
		}
		dir = parent
	}
}

// own holds a lock for as long as this process lives, however it ends. The file
// gets its name when it is locked, so nobody sees it free before.
func own(base string) (*os.File, error) {
	f, err := os.CreateTemp(base, "owner-")
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, os.Rename(f.Name(), filepath.Join(base, "owner"))
}

// sweep ends the clusters of test processes that were killed before they could.
func sweep(script string) {
	owners, _ := filepath.Glob(filepath.Join(temporary, basePattern, "owner"))
	for _, path := range owners {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = (&devcluster{script: script, base: filepath.Dir(path), owner: f}).down()
			continue
		}
		f.Close()
	}
}

// run returns what scripts/cluster printed; its progress goes to stderr, where
// go test shows it.
func (d *devcluster) run(command string, args ...string) (string, error) {
	args = slices.Concat([]string{command}, args, []string{"--dir", filepath.Join(d.base, "cluster")})
	cmd := exec.Command(d.script, args...) //nolint:gosec // scripts/cluster, with a test's own arguments
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w", d.script, command, err)
	}
	return strings.TrimSpace(out.String()), nil
}

func (d *devcluster) down() error {
	defer d.owner.Close()
	if _, err := d.run("down"); err != nil {
		return err
	}
	return os.RemoveAll(d.base)
}
