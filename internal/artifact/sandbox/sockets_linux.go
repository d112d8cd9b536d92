package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// dialSockets is the maximum number of connections to a program. The caller keeps them open, so
	// that it needs only a few.
	dialSockets = 100
	// dialTime is the maximum time for the program to accept a connection.
	dialTime = 5 * time.Second
	// mostSent is the maximum number of file descriptors in one message (SCM_MAX_FD in the kernel).
	mostSent = 253
)

// errNoSockets is returned when the program has closed all connections.
var errNoSockets = errors.New("all connections to the program of the sandbox were used")

// sendSockets sends the sockets through which a program and this machine are connected: one that
// listens at each address, and those for connections to the program. A socket stays in the network
// in which it was made.
func sendSockets(report int, addresses []string) error {
	var all []int
	for _, address := range addresses {
		listener, err := net.Listen("tcp4", address)
		if err != nil {
			return fmt.Errorf("listen for the program: %w", err)
		}
		tcp, ok := listener.(*net.TCPListener)
		if !ok {
			return fmt.Errorf("listen for the program: %T", listener)
		}
		file, err := tcp.File()
		if err != nil {
			return fmt.Errorf("listen for the program: %w", err)
		}
		all = append(all, int(file.Fd()))
	}
	for range dialSockets {
		socket, err := dialSocket()
		if err != nil {
			return err
		}
		all = append(all, socket)
	}
	if err := unix.Sendmsg(report, []byte(sentSockets), unix.UnixRights(all...), nil, 0); err != nil {
		return fmt.Errorf("send sockets: %w", err)
	}
	return nil
}

// dialSocket returns a socket for a connection to the program. Its connect blocks, for dialTime at
// most.
func dialSocket() (int, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("make a socket for the program: %w", err)
	}
	limit := unix.NsecToTimeval(dialTime.Nanoseconds())
	if err := unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit); err != nil {
		return 0, fmt.Errorf("limit the time of connections to the program: %w", err)
	}
	return socket, nil
}

// receive reads a message of Enter and the sockets in it. The message is empty when the program is
// executed.
func receive(report *os.File) (text string, sockets []int, err error) {
	message, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4*mostSent))
	n, size, _, _, err := unix.Recvmsg(int(report.Fd()), message, rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return "", nil, fmt.Errorf("read from the sandbox: %w", err)
	}
	parsed, err := unix.ParseSocketControlMessage(rights[:size])
	if err != nil {
		return "", nil, fmt.Errorf("read from the sandbox: %w", err)
	}
	for i := range parsed {
		received, err := unix.ParseUnixRights(&parsed[i])
		if err != nil {
			return "", nil, fmt.Errorf("read from the sandbox: %w", err)
		}
		sockets = append(sockets, received...)
	}
	return string(message[:n]), sockets, nil
}

// dialer connects to a program with sockets of its network.
type dialer struct {
	mu   sync.Mutex
	free []int
}

// dial connects to an address of the program's loopback interface. A socket whose connection was
// refused can be used again.
func (d *dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	to, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return nil, fmt.Errorf("connect to the program of the sandbox: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("connect to %s of the sandbox: %w", address, err)
	}
	socket, err := d.take()
	if err != nil {
		return nil, err
	}
	at := &unix.SockaddrInet4{Port: to.Port}
	copy(at.Addr[:], to.IP.To4())
	if err := connect(ctx, socket, at); err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			d.put(socket)
		} else {
			_ = unix.Close(socket)
		}
		return nil, fmt.Errorf("connect to %s of the sandbox: %w", address, err)
	}
	file := os.NewFile(uintptr(socket), address)
	defer file.Close() // FileConn duplicates it
	connection, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("connect to %s of the sandbox: %w", address, err)
	}
	return connection, nil
}

// connect connects a socket that blocks. A signal interrupts it, since the kernel does not restart
// calls on sockets with a time limit, and the Go runtime sends signals to its threads; the next
// call waits for the same connection.
func connect(ctx context.Context, socket int, to *unix.SockaddrInet4) error {
	for {
		switch err := unix.Connect(socket, to); {
		case errors.Is(err, unix.EISCONN):
			return nil
		case !errors.Is(err, unix.EINTR):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

func (d *dialer) take() (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.free) == 0 {
		return 0, errNoSockets
	}
	socket := d.free[len(d.free)-1]
	d.free = d.free[:len(d.free)-1]
	return socket, nil
}

func (d *dialer) put(socket int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free = append(d.free, socket)
}

func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, socket := range d.free {
		_ = unix.Close(socket) // never connected
	}
	d.free = nil
}
