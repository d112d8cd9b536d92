package cluster

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

// listeningPorts returns the TCP ports that something listens on, on any
// address, on the node whose root is given. From a container with the node
// mounted, the node's first process shows the node's own network; otherwise it
// is the caller's.
func listeningPorts(root string) ([]int, error) {
	folder := "/proc/net"
	if filepath.Clean(root) != "/" {
		first := filepath.Join(root, "proc/1/net")
		if _, err := os.Stat(filepath.Join(first, "tcp")); err == nil {
			folder = first
		}
	}
	var ports []int
	for _, name := range []string{"tcp", "tcp6"} {
		found, err := readSockets(filepath.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) && name == "tcp6" {
			continue // IPv6 is switched off
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

// parseSockets reads the table of sockets that the kernel prints
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
