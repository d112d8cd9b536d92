package convert

import (
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// deployedAddresses sets where health and metrics are served. Up to 1.22 that is a plain HTTP
// listener that a configuration cannot disable, so it is bound to loopback; later releases serve
// both on the secure port.
func (c *conversion) deployedAddresses() {
	fields := []string{"healthzBindAddress", "metricsBindAddress"}
	var host string
	for _, name := range fields {
		key, value := node.Lookup(c.doc.Root, name)
		if key == nil {
			continue
		}
		h, port := schema.SplitAddress(node.Text(value))
		if port != 0 {
			c.Ports.Source = port
		}
		if schema.Loopback(h) {
			host = h
		}
		c.dropAddress(name, key, value)
	}
	if c.Rules.InsecurePort {
		c.Ports.Insecure = c.InsecurePort
		if c.Ports.Insecure == 0 {
			c.Ports.Insecure = DefaultInsecurePort
		}
		for _, name := range fields {
			node.Put(c.doc.Root, name, node.String("127.0.0.1:"+strconv.Itoa(c.Ports.Insecure)))
		}
	} else if host != "" {
		c.Args = append(c.Args, "--bind-address="+host)
		c.Note(nil, "health and metrics were only served on %s; --bind-address=%s preserves that", host, host)
	}
}

// dropAddress removes one of the two fields if the target lacks it, and reports the change.
func (c *conversion) dropAddress(name string, key, value *yaml.Node) {
	if c.Rules.InsecurePort {
		c.Note(key,
			"%s %q becomes a loopback address: the plain HTTP listener cannot be disabled; the secure port serves /healthz "+
				"and /metrics too", name, node.Text(value))
		return
	}
	node.Remove(c.doc.Root, name)
	path := map[string]string{"healthzBindAddress": "/healthz", "metricsBindAddress": "/metrics"}[name]
	c.Note(key, "%s %q left out: %s has no plain HTTP listener; %s is served on the secure port (--secure-port)", name,
		node.Text(value), c.Release, path)
}

// ownAddresses converts the addresses of a user's own document. The plain HTTP listener was removed
// after 1.22, but v1beta2 kept its fields.
func (c *conversion) ownAddresses() {
	names := []string{"healthzBindAddress", "metricsBindAddress"}
	// v1beta1 always listens; v1beta2 is read by releases with and without a listener.
	listened := c.from.Set == schema.InV1beta1 || c.from.Set == schema.InV1beta2 &&
		!slices.ContainsFunc(names, func(name string) bool {
			_, value := node.Lookup(c.doc.Root, name)
			return value != nil && schema.IsClosed(node.Text(value))
		})
	for _, name := range names {
		key, value := node.Lookup(c.doc.Root, name)
		switch {
		case c.Rules.InsecurePort && key != nil && node.Text(value) == "" && c.from.Set == schema.InV1beta1:
			node.Remove(c.doc.Root, name) // the default there, and refused in v1beta2
		case c.Rules.InsecurePort && (key == nil && !listened || key != nil && schema.IsClosed(node.Text(value))):
			c.listen(name, key)
		case c.Rules.InsecurePort:
		case key != nil && (!c.hasField(name) || !schema.IsClosed(node.Text(value))):
			c.stopListening(name, key, value)
		}
	}
}

// listen binds the listener that the target cannot disable to loopback.
func (c *conversion) listen(name string, key *yaml.Node) {
	node.Put(c.doc.Root, name, node.String("127.0.0.1:"+schema.SchedulerInsecurePort))
	c.Note(key, "%s set to loopback: %s serves health and metrics over plain HTTP, which a configuration cannot disable",
		name, c.Release)
}

// stopListening removes an address, and keeps its host for the secure port.
func (c *conversion) stopListening(name string, key, value *yaml.Node) {
	node.Remove(c.doc.Root, name)
	host, _ := schema.SplitAddress(node.Text(value))
	if !schema.IsClosed(node.Text(value)) && host != "" && host != "0.0.0.0" && host != "::" {
		flag := "--bind-address=" + host
		switch {
		case len(c.Args) == 0:
			c.Args = append(c.Args, flag)
			c.Note(key,
				"%s %q becomes the flag %s: %s has no plain HTTP listener and serves both on the secure port (--secure-port, "+
					"default 10259)", name, node.Text(value), flag, c.Release)
			return
		case c.Args[0] != flag:
			c.Loss(key, "use one host for both addresses", "%s %q: %s serves health and metrics on one address, %s", name,
				node.Text(value), c.Release, c.Args[0])
			return
		}
	}
	c.Note(key,
		"%s %q left out: %s has no plain HTTP listener and serves both on the secure port (--secure-port, default 10259)",
		name, node.Text(value), c.Release)
}
