package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Service is a program that runs in a sandbox until the caller ends it. Close it afterwards.
type Service struct {
	root      string
	dialer    dialer
	listeners []net.Listener
	// stop ends the connections, which running counts.
	stop    context.CancelFunc
	running sync.WaitGroup
}

// Start starts a program that runs until the caller kills it, or this process ends. It has no
// network but a loopback interface, on which it reaches the addresses of reach as it would outside,
// and nothing else. Its memory is limited by the machine; p.Timeout is ignored. dir is as for
// [Run]. launch starts the command. Only where [Run] isolates a program completely can one be
// started: the error is [ErrUnavailable] otherwise.
func Start(ctx context.Context, dir string, p Program, reach []string, launch func(*exec.Cmd) error,
) (s *Service, err error) {
	root, err := p.prepare(dir)
	if err != nil {
		return nil, err
	}
	connections, stop := context.WithCancel(context.WithoutCancel(ctx))
	s = &Service{root: root, stop: stop}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return s, fmt.Errorf("run %s: %w", p.Path, err)
	}
	report, child := os.NewFile(uintptr(pair[0]), "report"), os.NewFile(uintptr(pair[1]), "report")
	defer report.Close()
	cmd := p.command(exec.Command, entry{Root: root, Mode: modeIsolated, Service: true, Reach: reach})
	cmd.ExtraFiles = []*os.File{child}
	err = launch(cmd)
	_ = child.Close()
	if err != nil {
		return s, p.failedToStart(&failure{failedToIsolate, err.Error()})
	}
	for entered := false; ; entered = true {
		text, sockets, err := receive(report)
		switch kind, reason, failed := strings.Cut(text, "\n"); {
		case err != nil:
			return s, err
		case text == sentSockets:
			if err := s.use(connections, sockets, reach); err != nil {
				return s, err
			}
		case failed:
			return s, p.failedToStart(&failure{kind, reason})
		case !entered:
			return s, fmt.Errorf("run %s: it ended before it entered the sandbox", p.Path)
		default:
			return s, nil
		}
	}
}

// use serves the addresses with the sockets that listen at them, and keeps the other sockets.
func (s *Service) use(ctx context.Context, sockets []int, reach []string) error {
	if len(sockets) < len(reach) {
		return fmt.Errorf("read from the sandbox: it sent %d sockets", len(sockets))
	}
	s.dialer.free = sockets[len(reach):]
	for i, address := range reach {
		file := os.NewFile(uintptr(sockets[i]), address)
		listener, err := net.FileListener(file)
		if err = errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("listen for the program of the sandbox: %w", err)
		}
		s.listeners = append(s.listeners, listener)
		s.running.Go(func() { s.serve(ctx, listener, address) })
	}
	return nil
}

// serve connects the connections of the program with the address on this machine.
func (s *Service) serve(ctx context.Context, listener net.Listener, address string) {
	for {
		inner, err := listener.Accept()
		if err != nil {
			return // closed
		}
		s.running.Go(func() { forward(ctx, inner, address) })
	}
}

// forward copies what both sides write until both have ended. The program sees a side that cannot
// be reached as one that closes the connection.
func forward(ctx context.Context, inner net.Conn, address string) {
	defer inner.Close()
	outer, err := (&net.Dialer{}).DialContext(ctx, "tcp4", address)
	if err != nil {
		return
	}
	defer outer.Close()
	defer context.AfterFunc(ctx, func() { _, _ = inner.Close(), outer.Close() })()
	var writing sync.WaitGroup
	writing.Go(func() { pipe(inner, outer) })
	pipe(outer, inner)
	writing.Wait()
}

// pipe copies from one connection to another until the one ends.
func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from) // the sides notice
	if tcp, ok := to.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
}

// Dial connects to an address of the program's loopback interface.
func (s *Service) Dial(ctx context.Context, address string) (net.Conn, error) {
	return s.dialer.dial(ctx, address)
}

// Output returns what the program has written to [OutputPath].
func (s *Service) Output() ([]byte, error) {
	file, err := os.Open(filepath.Join(s.root, outputName))
	if err != nil {
		return nil, fmt.Errorf("read the output of the program of the sandbox: %w", err)
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, fileSizeLimit))
}

// Close ends the connections of the program, which has ended, and removes its files.
func (s *Service) Close() error {
	s.stop()
	var errs []error
	for _, listener := range s.listeners {
		errs = append(errs, listener.Close())
	}
	s.running.Wait()
	s.dialer.close()
	return errors.Join(append(errs, os.RemoveAll(s.root))...)
}
