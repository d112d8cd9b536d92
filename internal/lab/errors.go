//go:build linux

package lab

import "errors"

// ErrNotFound is returned for a lab that does not exist.
var ErrNotFound = errors.New("no such lab")

// ErrExists is returned by Up for a lab that already exists.
var ErrExists = errors.New("lab already exists")
