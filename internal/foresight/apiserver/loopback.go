package apiserver

import (
	"crypto/rand"
	"fmt"
	"net"
	"runtime"
)

// FreeAddress returns a TCP address on loopback that nothing listens on, as host and port. On
// Linux, where 127.0.0.0/8 is loopback, its host is a random one: no other server, and no outgoing
// connection, takes the port before the server that it is for.
func FreeAddress() (string, error) {
	host := net.IPv4(127, 0, 0, 1)
	if runtime.GOOS == "linux" {
		var random [2]byte
		_, _ = rand.Read(random[:]) // it never fails
		host = net.IPv4(127, random[0]|1, random[1], 1)
	}
	at, err := freeAt(host)
	if err != nil {
		return "", err
	}
	return at.String(), nil
}

// FreePort returns a TCP port on 127.0.0.1 that was free a moment ago. Another program may take it
// before it is used.
func FreePort() (int, error) {
	at, err := freeAt(net.IPv4(127, 0, 0, 1))
	if err != nil {
		return 0, err
	}
	return at.Port, nil
}

func freeAt(host net.IP) (*net.TCPAddr, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: host})
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	at, _ := listener.Addr().(*net.TCPAddr)
	return at, listener.Close()
}
