//go:build !linux

package sandbox

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"runtime"
)

// Run returns [ErrUnavailable]: images contain Linux programs.
func Run(context.Context, string, Program) (*Result, error) {
	return nil, fmt.Errorf("%w: it runs %s, not Linux", ErrUnavailable, runtime.GOOS)
}

// Service is a program that runs in a sandbox.
type Service struct{}

// Start returns [ErrUnavailable].
func Start(context.Context, string, Program, []string, func(*exec.Cmd) error) (*Service, error) {
	return nil, fmt.Errorf("%w: it runs %s, not Linux", ErrUnavailable, runtime.GOOS)
}

// Dial fails: Start starts no program.
func (*Service) Dial(context.Context, string) (net.Conn, error) { return nil, ErrUnavailable }

// Output fails, too.
func (*Service) Output() ([]byte, error) { return nil, ErrUnavailable }

// Close does nothing.
func (*Service) Close() error { return nil }

// Enter fails: Run starts no process.
func Enter([]string) (status int) { return 1 }
