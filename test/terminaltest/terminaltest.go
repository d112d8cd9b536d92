//go:build linux

// Package terminaltest opens pseudo-terminals for tests.
package terminaltest

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Open opens a pseudo-terminal. A program that has program as its controlling terminal receives
// SIGHUP when user, the other end, is closed. Both are closed when the test ends.
func Open(t testing.TB) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = user.Close() })
	fd := int(user.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatalf("unlock the pseudo-terminal: %v", err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatalf("find the name of the pseudo-terminal: %v", err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return user, program
}

// ReceiveSignals makes the programs that the test starts receive SIGINT and SIGHUP although this
// process ignores them, as it does when it was started in the background or by nohup: children
// inherit ignored signals, and pmk-sched respects that.
func ReceiveSignals(t testing.TB) {
	t.Helper()
	receiveSignals()
}

// receiveSignals receives the signals until the process ends: other tests run at the same time. A
// second caller waits for the first one: package signal forgets that a signal is ignored before the
// kernel does.
var receiveSignals = sync.OnceFunc(func() {
	for _, s := range []os.Signal{os.Interrupt, unix.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
})

// Shown returns the text of a terminal line that remains after clearing.
func Shown(line string) string {
	if i := strings.LastIndex(line, "\x1b[K"); i >= 0 {
		line = line[i+len("\x1b[K"):]
	}
	return strings.TrimSpace(line)
}
