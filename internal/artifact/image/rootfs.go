package image

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

// CopyProgram is [ExtractProgram] for the image of a container whose files are below root, with the
// given environment and working directory: for a container that this process runs in, whose image
// it need not find anywhere. The entrypoint of the image is unknown there.
func CopyProgram(root string, environ []string, workingDir string, command []string, to string) (Program, error) {
	config := v1.Config{Env: environ, WorkingDir: workingDir}
	r := rootfs(root)
	program := Program{}
	for _, word := range command {
		if r.find(lookup(config, word)) == "" {
			program.Missing = word
			break
		}
	}
	var named []string
	if len(command) > 0 {
		named = lookup(config, command[len(command)-1])
	}
	candidates := slices.Concat(named, schedulerPlaces)
	if program.Path = r.find(candidates); program.Path == "" {
		return program, fmt.Errorf("read the kube-scheduler of the image: it is at none of %s: %w",
			strings.Join(candidates, ", "), fs.ErrNotExist)
	}
	if err := copyExecutable(filepath.Join(root, program.Path), to); err != nil {
		return program, fmt.Errorf("read the kube-scheduler of the image: %w", err)
	}
	return program, nil
}

type rootfs string

// find returns the first of the paths that has a program, "" if none has.
func (r rootfs) find(paths []string) string {
	for _, candidate := range paths {
		info, err := os.Stat(filepath.Join(string(r), candidate))
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return candidate
		}
	}
	return ""
}

func copyExecutable(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	limit := defaultLimits().program
	_, err = io.Copy(out, &safeio.LimitedReader{R: in, N: limit,
		Err: fmt.Errorf("the program has more than %d bytes", limit)})
	return errors.Join(err, out.Chmod(0o755), out.Close())
}
