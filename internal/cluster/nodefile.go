package cluster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/problem"
)

// maxNodeFile bounds what is read from a node: kubeconfigs, certificates and
// configurations are a few kilobytes.
const maxNodeFile = 1 << 20

// readNodeFile reads a regular file of a node. The path is absolute as the node
// sees it; errors name it so.
func readNodeFile(root, path string) (content []byte, err error) {
	onHost, err := resolve(root, path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(onHost)
	if err != nil {
		return nil, nodeError("read", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: it is no regular file", path)
	}
	file, err := os.Open(onHost)
	if err != nil {
		return nil, nodeError("read", path, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	content, err = io.ReadAll(io.LimitReader(file, maxNodeFile+1))
	if err != nil {
		return nil, nodeError("read", path, err)
	}
	if len(content) > maxNodeFile {
		return nil, fmt.Errorf("read %s: it is larger than %d bytes", path, maxNodeFile)
	}
	return content, nil
}

// nodeFileExists reports whether a file of a node is there. The error is of the
// looking: a folder that may not be searched, say.
func nodeFileExists(root, path string) (bool, error) {
	onHost, err := resolve(root, path)
	if err == nil {
		_, err = os.Stat(onHost)
	}
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, nodeError("look for", path, err)
}

// OnHost returns where a node's path is for this process, which sees the node's root
// folder at root ("" and "/" are the same). Symbolic links are followed as the node
// would, and nothing leads out of root.
func OnHost(root, path string) (string, error) { return resolve(root, path) }

// resolve returns where a node's path is below root, following symbolic links
// as the node would: an absolute link begins at root again, and nothing leads
// out of it.
func resolve(root, path string) (string, error) {
	const maxLinks = 40
	if root == "" {
		root = "/"
	}
	rest := strings.Split(filepath.Clean("/"+path), "/")
	done := "/" // resolved so far, as the node sees it
	for links := 0; len(rest) > 0; {
		next := filepath.Join(done, rest[0])
		rest = rest[1:]
		target, err := os.Readlink(filepath.Join(root, next))
		if err != nil {
			done = next // no link, or not there: opening it will tell
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("look for %s: too many symbolic links", path)
		}
		if filepath.IsAbs(target) {
			done = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return filepath.Join(root, done), nil
}

// nodeError says what was done to a node's file, without the root in front of it.
func nodeError(doing, path string, err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	err = fmt.Errorf("%s %s: %w", doing, path, err)
	if errors.Is(err, fs.ErrPermission) {
		return problem.WithHint(err, "run as root on the control-plane node")
	}
	return err
}
