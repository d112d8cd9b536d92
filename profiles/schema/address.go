package schema

import (
	"net/netip"
	"strconv"
	"strings"
)

// LeaseLock is the resource lock that every release supports, and the only one from 1.27.
const LeaseLock = "leases"

// DefaultSchedulerName is the scheduler name of a profile that sets none.
const DefaultSchedulerName = "default-scheduler"

// SchedulerInsecurePort is the default port on which 1.20–1.22 serve health and metrics over
// plain HTTP (pkg/scheduler/apis/config/types.go).
const SchedulerInsecurePort = "10251"

// SplitAddress splits an address into host and port; either may be missing.
func SplitAddress(s string) (host string, port int) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, 0
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return s, 0
	}
	p, err := strconv.ParseUint(s[i+1:], 10, 16)
	if err != nil {
		return s[:i], 0
	}
	return strings.Trim(s[:i], "[]"), int(p)
}

// Loopback reports whether host is a loopback address.
func Loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}

// IsClosed reports whether an address disables its listener.
func IsClosed(address string) bool {
	_, port := SplitAddress(address)
	return address == "" || strings.HasSuffix(address, ":0") && port == 0
}
