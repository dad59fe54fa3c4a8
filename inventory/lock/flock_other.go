//go:build !unix

package lock

import (
	"errors"
	"io/fs"
	"os"
)

const noFollow = 0

// flock always fails: no run is proven dead here, its lease has to run out.
func flock(*os.File) error { return errors.ErrUnsupported }

func owner(fs.FileInfo) (int, bool) { return 0, false }
