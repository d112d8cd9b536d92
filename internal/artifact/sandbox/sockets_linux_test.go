package sandbox

import (
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fullListener listens at an address whose queue of connections is full: the kernel answers the
// next one when accept was called.
func fullListener(t *testing.T) (address string, accept func()) {
	t.Helper()
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(listener) })
	if err := unix.Bind(listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(listener, 0); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(listener)
	if err != nil {
		t.Fatal(err)
	}
	address = (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: at.(*unix.SockaddrInet4).Port}).String()
	first, err := net.Dial("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Close() })
	return address, func() {
		accepted, _, err := unix.Accept(listener)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(accepted) })
	}
}

func TestASignalDoesNotEndAConnectionToTheProgram(t *testing.T) {
	address, accept := fullListener(t)
	socket, err := dialSocket()
	if err != nil {
		t.Fatal(err)
	}
	d := &dialer{free: []int{socket}}
	thread, done := make(chan int, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		thread <- unix.Gettid()
		connection, err := d.dial(t.Context(), address)
		if err == nil {
			err = connection.Close()
		}
		done <- err
	}()
	id := <-thread
	for signals := 0; ; signals++ {
		select {
		case err := <-done:
			if err != nil || signals < 10 {
				t.Errorf("after %d signals: %v", signals, err)
			}
			return
		case <-time.After(10 * time.Millisecond):
			if err := unix.Tgkill(os.Getpid(), id, unix.SIGURG); err != nil {
				t.Fatal(err)
			}
		}
		if signals == 10 {
			accept()
		}
	}
}
