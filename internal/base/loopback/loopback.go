// Package loopback recognizes hosts that are this machine.
package loopback

import (
	"net"
	"strings"
)

// Is reports whether a host, with or without a port, is localhost or a loopback address.
func Is(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
