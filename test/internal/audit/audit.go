// Package audit reads the audit logs of the API servers of a lab, and checks the bindings of
// schedulers: each pod is bound once, and only the leader binds pods.
package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Log holds the bindings and lease renewals that the API servers of a cluster logged, in the order
// in which the requests were received.
type Log struct {
	Bindings []Binding
	Renewals []Renewal
}

// Binding is a request to bind a pod.
type Binding struct {
	// Pod is namespace/name, Node is the target. Node is empty if the API server was killed before it
	// responded.
	Pod, Node string
	// Code is the HTTP status, 0 if there was no response.
	Code int
	At   time.Time
	// Server is the node whose API server logged the request. It is the node of the replica:
	// schedulers on control-plane nodes use the API server of the same node.
	Server string
}

// File is a log file of the API server of a node.
type File struct{ Node, Path string }

func (b Binding) bound() bool { return b.Code == 200 || b.Code == 201 }

// unknown reports whether the pod may be bound or not: there was no response, or an error of the
// server, such as a request to etcd that took effect after its timeout.
func (b Binding) unknown() bool { return b.Code == 0 || b.Code >= 500 }

// Renewal is a change of a lease that succeeded.
type Renewal struct {
	// Lease is the name of a lease in kube-system; Holder is its holder afterwards, "" if it was
	// released.
	Lease, Holder string
	At            time.Time
}

// event is an event of audit.k8s.io/v1, with the fields that this package reads.
type event struct {
	AuditID   string `json:"auditID"`
	Stage     string `json:"stage"`
	ObjectRef struct {
		Resource, Subresource, Namespace, Name string
	} `json:"objectRef"`
	ResponseStatus struct{ Code int } `json:"responseStatus"`
	RequestObject  struct {
		Metadata struct{ Name string }
		Target   struct{ Name string }
		Spec     struct{ HolderIdentity string }
	} `json:"requestObject"`
	// Received is not later than the effect of the request; the other time of an event may be later
	// than the client's next action.
	Received time.Time `json:"requestReceivedTimestamp"`
}

// Read reads log files. A last line that is not complete yet is ignored.
func Read(files ...File) (Log, error) {
	bindings, log := map[string]Binding{}, Log{}
	for _, file := range files {
		text, err := os.ReadFile(file.Path)
		if err != nil {
			return Log{}, fmt.Errorf("read audit log: %w", err)
		}
		for line := range bytes.Lines(text) {
			if !bytes.HasSuffix(line, []byte("\n")) {
				continue
			}
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				return Log{}, fmt.Errorf("read audit log %s: %w: %q", file.Path, err, line)
			}
			switch {
			case e.ObjectRef.Resource == "leases":
				log.addRenewal(e)
			case e.ObjectRef.Subresource == "binding" || e.ObjectRef.Resource == "bindings":
				addBinding(bindings, e, file.Node)
			}
		}
	}
	for _, b := range bindings {
		log.Bindings = append(log.Bindings, b)
	}
	slices.SortFunc(log.Bindings, func(a, b Binding) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Pod, b.Pod)) })
	slices.SortStableFunc(log.Renewals, func(a, b Renewal) int { return a.At.Compare(b.At) })
	return log, nil
}

// addBinding adds an event to the request that it is about, which has one when it is received and
// one when it is complete.
func addBinding(bindings map[string]Binding, e event, server string) {
	b := bindings[e.AuditID]
	b.Server = server
	b.Pod, b.At = e.ObjectRef.Namespace+"/"+cmp.Or(e.ObjectRef.Name, e.RequestObject.Metadata.Name), e.Received
	if e.Stage == "ResponseComplete" || e.Stage == "Panic" {
		b.Node, b.Code = e.RequestObject.Target.Name, e.ResponseStatus.Code
	} else if b.Code != 0 {
		return
	}
	bindings[e.AuditID] = b
}

func (l *Log) addRenewal(e event) {
	if code := e.ResponseStatus.Code; code != 200 && code != 201 {
		return
	}
	name := cmp.Or(e.ObjectRef.Name, e.RequestObject.Metadata.Name)
	l.Renewals = append(l.Renewals, Renewal{Lease: name, Holder: e.RequestObject.Spec.HolderIdentity, At: e.Received})
}

// Of returns the log with only the bindings of pods whose namespace/name begins with prefix.
func (l Log) Of(prefix string) Log {
	l.Bindings = slices.DeleteFunc(slices.Clone(l.Bindings),
		func(b Binding) bool { return !strings.HasPrefix(b.Pod, prefix) })
	return l
}

// Count counts the bindings that an API server refused, and the bindings with an unknown result.
func (l Log) Count() (refused, unknown int) {
	for _, b := range l.Bindings {
		switch {
		case b.unknown():
			unknown++
		case !b.bound():
			refused++
		}
	}
	return refused, unknown
}
