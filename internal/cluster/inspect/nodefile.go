package inspect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// maxNodeFile bounds a file's size: kubeconfigs, certificates and configurations are a few
// kilobytes.
const maxNodeFile = 1 << 20

// readNodeFile reads a regular file on a node by its absolute path on the node.
func readNodeFile(root, path string) (content []byte, err error) {
	onHost, err := OnHost(root, path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(onHost)
	if err != nil {
		return nil, problem.NodeFile("read", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: not a regular file", path)
	}
	file, err := os.Open(onHost)
	if err != nil {
		return nil, problem.NodeFile("read", path, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	content, err = io.ReadAll(io.LimitReader(file, maxNodeFile+1))
	if err != nil {
		return nil, problem.NodeFile("read", path, err)
	}
	if len(content) > maxNodeFile {
		return nil, fmt.Errorf("read %s: larger than %d bytes", path, maxNodeFile)
	}
	return content, nil
}

// NodeFileTime returns when a file on a node was written.
func NodeFileTime(root, path string) (time.Time, error) {
	onHost, err := OnHost(root, path)
	if err != nil {
		return time.Time{}, err
	}
	info, err := os.Stat(onHost)
	if err != nil {
		return time.Time{}, problem.NodeFile("read", path, err)
	}
	return info.ModTime(), nil
}

// nodeFileExists reports whether a file on a node exists.
func nodeFileExists(root, path string) (bool, error) {
	onHost, err := OnHost(root, path)
	if err == nil {
		_, err = os.Stat(onHost)
	}
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, problem.NodeFile("find", path, err)
}

// OnHost returns the path at which this process can open a node's file. The node's root directory
// is at root; an empty root means "/". OnHost follows symbolic links as the node does: an absolute
// link starts at root, and no link leads out of it.
func OnHost(root, path string) (string, error) {
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
			done = next // not a link, or it does not exist: opening it reports that
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("find %s: too many symbolic links", path)
		}
		if filepath.IsAbs(target) {
			done = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return filepath.Join(root, done), nil
}
