package loadaware

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

type sample struct {
	Metric map[string]string `json:"metric"`
	Value  point             `json:"value"`
}

// point is a time and a value, which Prometheus writes as [seconds, "value"]. It stays zero, at
// 1970, for a native histogram, which does not have a single value.
type point struct {
	at    float64
	value float64
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *point) UnmarshalJSON(raw []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	if len(parts) != 2 {
		return fmt.Errorf("a point has %d parts, expected 2", len(parts))
	}
	var text string
	if err := json.Unmarshal(parts[0], &p.at); err != nil {
		return err
	}
	if err := json.Unmarshal(parts[1], &text); err != nil {
		return err
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		value = math.NaN()
	}
	p.value = value
	return nil
}

// Reasons to discard a sample.
const (
	discardNoLabel   = "no_label"
	discardNaN       = "not_a_number"
	discardOld       = "old"
	discardDuplicate = "duplicate"
)

// readings are the loads by node name, as a fraction of full: 1 is fully loaded.
type readings map[string]float64

// read converts samples to readings. It discards samples that are not a number, do not name a node
// or are older than oldest, and uses the higher of two samples for a node. discarded counts them by
// reason.
func read(samples []sample, m Metric, oldest time.Time) (loads readings, discarded map[string]int) {
	loads = make(readings, len(samples))
	discarded = map[string]int{}
	oldestSeconds := float64(oldest.UnixNano()) / float64(time.Second)
	for i := range samples {
		s := &samples[i]
		name := nodeKey(s.Metric[m.NodeLabel])
		load := s.Value.value / m.Full
		switch {
		case name == "":
			discarded[discardNoLabel]++
			continue
		case math.IsNaN(load) || math.IsInf(load, 0):
			discarded[discardNaN]++
			continue
		case s.Value.at < oldestSeconds:
			discarded[discardOld]++
			continue
		}
		if load < 0 {
			load = 0
		}
		if other, twice := loads[name]; twice {
			discarded[discardDuplicate]++
			if other > load {
				load = other
			}
		}
		loads[name] = load
	}
	return loads, discarded
}

// nodeKey normalizes the value of a label for comparison: without the port, in lower case,
// addresses in their short form.
func nodeKey(label string) string {
	if host, port, err := net.SplitHostPort(label); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err == nil {
			label = host
		}
	}
	if ip := net.ParseIP(label); ip != nil {
		return ip.String()
	}
	return strings.ToLower(label)
}

// name adds readings by node name, which is looked up first, and returns the number of nodes that
// have one.
func (r readings) name(nodes []*corev1.Node) (known int) {
	for _, node := range nodes {
		if load, ok := r.of(node); ok {
			r[node.Name] = load
			known++
		}
	}
	return known
}

// of returns a node's load, found by its name, its host name or an internal address. It does not
// allocate.
func (r readings) of(node *corev1.Node) (float64, bool) {
	if load, ok := r[node.Name]; ok {
		return load, true
	}
	if load, ok := r[node.Labels[corev1.LabelHostname]]; ok {
		return load, true
	}
	for i := range node.Status.Addresses {
		switch address := &node.Status.Addresses[i]; address.Type {
		case corev1.NodeInternalIP, corev1.NodeHostName, corev1.NodeInternalDNS:
			if load, ok := r[address.Address]; ok {
				return load, true
			}
		}
	}
	return 0, false
}
