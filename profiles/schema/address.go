package schema

import (
	"net/netip"
	"strconv"
	"strings"
)

// LeaseLock is the one lock that every release accepts; from 1.27 it is the only one.
const LeaseLock = "leases"

const DefaultSchedulerName = "default-scheduler"

// defaultInsecure is where 1.20–1.22 serve health and metrics over plain HTTP
// unless told otherwise (pkg/scheduler/apis/config/types.go).
const SchedulerInsecurePort = "10251"

// SplitAddress takes host and port apart; either may be missing.
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

func Loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}

// IsClosed says whether an address is that of no listener.
func IsClosed(address string) bool {
	_, port := SplitAddress(address)
	return address == "" || strings.HasSuffix(address, ":0") && port == 0
}
