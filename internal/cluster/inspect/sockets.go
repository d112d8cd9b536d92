package inspect

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listeningPorts returns the TCP ports with a listener on any address of the node. In a container
// that mounts the node's root, the node's first process is in the node's network namespace.
func listeningPorts(root string) ([]int, error) {
	dir := "/proc/net"
	if filepath.Clean(root) != "/" {
		first := filepath.Join(root, "proc/1/net")
		if _, err := os.Stat(filepath.Join(first, "tcp")); err == nil {
			dir = first
		}
	}
	var ports []int
	for _, name := range []string{"tcp", "tcp6"} {
		found, err := readSockets(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) && name == "tcp6" {
			continue // IPv6 is disabled
		}
		if err != nil {
			return nil, fmt.Errorf("read listening sockets: %w", err)
		}
		ports = append(ports, found...)
	}
	return sortedPorts(ports), nil
}

func readSockets(path string) (ports []int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return parseSockets(file)
}

// parseSockets reads the kernel's table of sockets
// (Documentation/networking/proc_net_tcp): a heading, then lines whose second
// field is the local address as hex "address:port" and whose fourth is the state.
func parseSockets(r io.Reader) ([]int, error) {
	const stateListen = "0A"
	var ports []int
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || fields[3] != stateListen {
			continue
		}
		_, text, _ := strings.Cut(fields[1], ":")
		port, err := strconv.ParseUint(text, 16, 16)
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		ports = append(ports, int(port))
	}
	return ports, lines.Err()
}
