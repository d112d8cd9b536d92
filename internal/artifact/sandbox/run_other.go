//go:build !linux

package sandbox

import (
	"context"
	"fmt"
	"runtime"
)

// Run returns [ErrUnavailable]: images contain Linux programs.
func Run(context.Context, string, Program) (*Result, error) {
	return nil, fmt.Errorf("%w: it runs %s, not Linux", ErrUnavailable, runtime.GOOS)
}

// Enter fails: Run starts no process.
func Enter([]string) (status int) { return 1 }
