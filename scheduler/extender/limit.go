package extender

import (
	"encoding/json"
	"fmt"
)

// Limits for a request about a pod, which the API server stores in at most 1.5 MiB (etcd's request
// limit), and for each node.
const (
	podBytes  = 3 << 20 // a pod whose quotes are escaped again
	nameBytes = 300     // names of nodes have at most 253 bytes
	nodeBytes = 25 << 10
	// unseenNodes is the number of nodes that the scheduler may know before the cache does, in
	// addition to a quarter of the cached nodes.
	unseenNodes = 1000
	// assumedNodes is the number of nodes without a cluster.
	assumedNodes = 5000
	// listEntries and fields of a pod; the largest pods have hundreds.
	listEntries = 8 << 10
	fields      = 64 << 10
	// victimsPerNode are pods that one node may lose to preemption.
	victimsPerNode = 110
)

// limits bound one request: the memory that a sender can make the extender allocate follows from
// the cluster's size.
type limits struct {
	nodes     int
	namesOnly bool
}

func (e *Extender) limits() limits {
	l := limits{nodes: assumedNodes, namesOnly: e.namesOnly}
	if e.cache != nil {
		l.nodes = e.cache.size()
	}
	return l
}

// names is the number of nodes in a request.
func (l limits) names() int { return l.nodes + l.nodes/4 + unseenNodes }

// body is the size of a request in bytes.
func (l limits) body() int64 {
	if l.namesOnly {
		return podBytes + int64(l.names())*nameBytes
	}
	return podBytes + int64(l.names())*nodeBytes
}

// pod bounds a pod, victims the pods that several nodes may lose.
func (l limits) pod() size { return size{entries: listEntries, fields: fields} }

func (l limits) victims() size {
	pods := l.nodes * victimsPerNode
	return size{entries: listEntries + 50*pods, fields: fields + 500*pods}
}

// limited decodes a value unless it is larger than limit. A few bytes in JSON, such as null in a
// list of containers, can take hundreds of times their size when decoded.
type limited[T any] struct {
	what    string
	limit   size
	refused error // the error for any value that is not empty
	value   T
	given   bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *limited[T]) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		l.given = false
		return nil
	}
	if l.refused != nil && measure(data).top > 0 {
		return l.refused
	}
	if l.limit != (size{}) && !measure(data).within(l.limit) {
		return &sizeError{fmt.Sprintf("%s has more than %s", l.what, l.limit)}
	}
	l.given = true
	return json.Unmarshal(data, &l.value)
}

// size counts the parts of a JSON document, or bounds them. The bound 0 means any number.
type size struct {
	top     int // elements or fields of the document itself
	entries int // elements of lists
	fields  int // fields of objects
}

func (s size) within(limit size) bool {
	return (limit.top == 0 || s.top <= limit.top) && (limit.entries == 0 || s.entries <= limit.entries) &&
		(limit.fields == 0 || s.fields <= limit.fields)
}

// String describes a bound.
func (s size) String() string {
	if s.top > 0 {
		return fmt.Sprintf("%d entries", s.top)
	}
	return fmt.Sprintf("%d list entries or %d fields", s.entries, s.fields)
}

type sizeError struct{ message string }

// Error returns the message.
func (e *sizeError) Error() string { return e.message }

// measure counts in one pass, without decoding. Of a document that is not valid it counts
// something.
func measure(data []byte) size {
	var s size
	var isList []bool
	count := func() {
		switch len(isList) {
		case 0:
			return
		case 1:
			s.top++
		}
		if isList[len(isList)-1] {
			s.entries++
		} else {
			s.fields++
		}
	}
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			isList = append(isList, data[i] == '[')
			if next := i + 1; next < len(data) && data[next] != ']' && data[next] != '}' {
				count()
			}
		case ',':
			count()
		case ']', '}':
			if len(isList) > 0 {
				isList = isList[:len(isList)-1]
			}
		}
	}
	return s
}
