package profiles

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// addresses settles where health and metrics are served. Up to 1.22 that is a
// plain HTTP listener that a configuration cannot switch off, so it is put on
// loopback; after, the secure port serves both.
func (c *conversion) addresses() {
	fields := []string{"healthzBindAddress", "metricsBindAddress"}
	var host string
	for _, name := range fields {
		key, value := lookup(c.doc.root, name)
		if key == nil {
			continue
		}
		h, port := splitAddress(text(value))
		if port != 0 {
			c.ports.Source = port
		}
		if loopback(h) {
			host = h
		}
		c.address(name, key, value)
	}
	if c.rules.InsecurePort {
		c.ports.Insecure = c.insecurePort
		if c.ports.Insecure == 0 {
			c.ports.Insecure = DefaultInsecurePort
		}
		for _, name := range fields {
			put(c.doc.root, name, str("127.0.0.1:"+strconv.Itoa(c.ports.Insecure)))
		}
	} else if host != "" {
		c.args = append(c.args, "--bind-address="+host)
		c.note(nil, "health and metrics were served on %s only; --bind-address=%s keeps that on the host's network", host, host)
	}
}

// address tells what becomes of one of the two fields, and removes it where the
// target has none.
func (c *conversion) address(name string, key, value *yaml.Node) {
	if c.rules.InsecurePort {
		c.note(key, "%s %q becomes an address on loopback: it is plain HTTP for everyone, and cannot be switched off; /healthz and /metrics are served over HTTPS on the secure port too", name, text(value))
		return
	}
	remove(c.doc.root, name)
	path := map[string]string{"healthzBindAddress": "/healthz", "metricsBindAddress": "/metrics"}[name]
	c.note(key, "%s %q left out: %s has no plain HTTP listener; %s is served over HTTPS on the secure port (--secure-port)", name, text(value), c.release, path)
}

// ownAddresses carries where a user's own document has health and metrics served.
// The plain HTTP listener ended with 1.22, but for v1beta2 its fields stayed.
func (c *conversion) ownAddresses() {
	names := []string{"healthzBindAddress", "metricsBindAddress"}
	// v1beta1 always listened; v1beta2 was read by releases of both kinds.
	listened := c.from.set == inV1beta1 || c.from.set == inV1beta2 && !slices.ContainsFunc(names, func(name string) bool {
		_, value := lookup(c.doc.root, name)
		return value != nil && closed(text(value))
	})
	for _, name := range names {
		key, value := lookup(c.doc.root, name)
		switch {
		case c.rules.InsecurePort && key != nil && text(value) == "" && c.from.set == inV1beta1:
			remove(c.doc.root, name) // the default there, and refused in v1beta2
		case c.rules.InsecurePort && (key == nil && !listened || key != nil && closed(text(value))):
			c.listen(name, key)
		case c.rules.InsecurePort:
		case key != nil && (!c.fieldOf(name) || !closed(text(value))):
			c.stopListening(name, key, value)
		}
	}
}

// fieldOf says whether the document has a field of that name in the target.
func (c *conversion) fieldOf(name string) bool {
	_, ok := configuration().field(name, c.to)
	return ok
}

// closed says whether an address is that of no listener.
func closed(address string) bool {
	_, port := splitAddress(address)
	return address == "" || strings.HasSuffix(address, ":0") && port == 0
}

// listen keeps the listener that the target cannot switch off away from others.
func (c *conversion) listen(name string, key *yaml.Node) {
	put(c.doc.root, name, str("127.0.0.1:"+defaultInsecurePort))
	c.note(key, "%s set to loopback: %s serves health and metrics over plain HTTP, which a configuration cannot switch off", name, c.release)
}

// stopListening takes an address out, and keeps the host that it names for the
// secure port.
func (c *conversion) stopListening(name string, key, value *yaml.Node) {
	remove(c.doc.root, name)
	host, _ := splitAddress(text(value))
	if !closed(text(value)) && host != "" && host != "0.0.0.0" && host != "::" {
		flag := "--bind-address=" + host
		switch {
		case len(c.args) == 0:
			c.args = append(c.args, flag)
			c.note(key, "%s %q becomes the flag %s: %s has no plain HTTP listener, and serves the same over HTTPS on the secure port (--secure-port, 10259 unless given)", name, text(value), flag, c.release)
			return
		case c.args[0] != flag:
			c.loss(key, "use one host for both addresses", "%s %q: %s serves health and metrics on one address, %s", name, text(value), c.release, c.args[0])
			return
		}
	}
	c.note(key, "%s %q left out: %s has no plain HTTP listener, and serves the same over HTTPS on the secure port (--secure-port, 10259 unless given)", name, text(value), c.release)
}

// ownElection carries the lock of a user's own document: client-go has known
// leases only since 1.27, and no lock that is not written to a lease too since
// 1.24 (tools/leaderelection/resourcelock/interface.go).
func (c *conversion) ownElection() {
	lease := get(c.doc.root, "leaderElection")
	key, lock := lookup(lease, "resourceLock")
	elects := isNull(get(lease, "leaderElect")) || isTrue(get(lease, "leaderElect"))
	switch was := text(lock); {
	case lease == nil && !c.rules.LeaderElectFlagsWithConfig && c.from.set != inV1beta1:
		c.note(nil, "%s ignores --leader-elect and the flags that belong to it where there is a --config; what they said has to stand under leaderElection", c.release)
	case was == "" || was == leases || !elects:
	case c.minor >= 27:
		c.set(lease, "resourceLock", str(leases), "")
		c.note(key, "resourceLock %s becomes leases, the only one in %s; replicas that still hold the other do not see the lease, so end them first", was, c.release)
	case c.minor >= 24 && (was == "endpoints" || was == "configmaps"):
		c.set(lease, "resourceLock", str(was+"leases"), "")
		c.note(key, "resourceLock %s becomes %sleases: %s does not have it, and this one holds both", was, was, c.release)
	}
}

// tidy takes out the profile that a document without any stands for, where
// nothing had to be written into it.
func (c *conversion) tidy() {
	all := get(c.doc.root, "profiles")
	if len(items(all)) == 1 && isMapping(all.Content[0]) && len(all.Content[0].Content) == 0 {
		remove(c.doc.root, "profiles")
	}
	if c.doc.flow {
		blockStyle(c.doc.root)
	}
}
