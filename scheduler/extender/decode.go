package extender

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// nodeArguments are ExtenderArgs, the request of filter and prioritize. Whole nodes are kept in
// their original form too: the answer contains the nodes as sent, including fields unknown to this
// program.
type nodeArguments struct {
	pod   *corev1.Pod
	names []string
	// whole are the nodes of a request with objects, nil if the request has names.
	whole []wholeNode
}

// wholeNode is a node in its original form. Its object is decoded on demand, since most are the
// same as in the cache.
type wholeNode struct {
	raw             json.RawMessage
	resourceVersion string
}

func (n wholeNode) object() (*corev1.Node, error) {
	object := &corev1.Node{}
	return object, json.Unmarshal(n.raw, object)
}

// identity is the metadata that identifies a known node.
type identity struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

// wireArguments are ExtenderArgs with undecoded nodes.
type wireArguments struct {
	Pod       limited[corev1.Pod]
	Nodes     limited[wireNodes]
	NodeNames limited[[]string]
}

type wireNodes struct {
	Items limited[[]json.RawMessage] `json:"items"`
}

// newWireArguments returns arguments to decode into, with their limits.
func newWireArguments(l limits) *wireArguments {
	w := &wireArguments{}
	w.Pod.what, w.Pod.limit = "Pod", l.pod()
	w.NodeNames.what, w.NodeNames.limit = "NodeNames", size{top: l.names()}
	w.Nodes.value.Items.what, w.Nodes.value.Items.limit = "Nodes", size{top: l.names()}
	return w
}

func decodeNodeArguments(body []byte, l limits) (*nodeArguments, error) {
	wire := newWireArguments(l)
	rest, names, found := cutNames(body, l.names())
	if err := unmarshal(rest, wire); err != nil && found {
		// The cut text was part of another field, or an error must refer to the whole body.
		found, wire = false, newWireArguments(l)
		if err := unmarshal(body, wire); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	if found {
		wire.NodeNames.given, wire.NodeNames.value = true, names
	}
	switch {
	case !wire.Pod.given:
		return nil, errors.New("no Pod")
	case !wire.Nodes.given && !wire.NodeNames.given:
		return nil, errors.New("neither NodeNames nor Nodes")
	case wire.Nodes.given && wire.NodeNames.given:
		return nil, errors.New("both NodeNames and Nodes: the form of the answer is ambiguous")
	case wire.NodeNames.given:
		return &nodeArguments{pod: &wire.Pod.value, names: wire.NodeNames.value}, nil
	case l.namesOnly:
		return nil, errNamesOnly
	}
	items := wire.Nodes.value.Items.value
	a := &nodeArguments{pod: &wire.Pod.value, names: make([]string, len(items)), whole: make([]wholeNode, len(items))}
	return a, a.decodeNodes(items)
}

var errNamesOnly = errors.New(
	"the request has whole objects, and this extender takes names only: set nodeCacheCapable: true in the scheduler's " +
		"configuration")

// cutNames cuts the node names from the body's end, in the form that schedulers write: they are
// most of the body and simple enough to need no decoder. The rest is a valid document if and only
// if the names were a field of the outermost object.
func cutNames(body []byte, most int) (rest []byte, names []string, found bool) {
	before, list, found := splitAtNames(body)
	if !found {
		return body, nil, false
	}
	names, found = splitNames(string(list), most)
	if !found {
		return body, nil, false
	}
	return append(bytes.Clone(before), '}'), names, true
}

// splitAtNames returns the text before the node names' field and the text between the first and the
// last quote in their list.
func splitAtNames(body []byte) (before, list []byte, found bool) {
	const begin, end = `,"NodeNames":["`, `"]}`
	// Inside a string the quotes would be escaped.
	at := bytes.Index(body, []byte(begin))
	if at < len("{\"\":0") || !bytes.HasSuffix(body, []byte(end)) || at+len(begin) > len(body)-len(end) {
		return body, nil, false
	}
	return body[:at], body[at+len(begin) : len(body)-len(end)], true
}

const betweenNames = `","`

// splitNames splits the text between the first and last quote in a list of strings. Text that needs
// a decoder, and more names than most, is not split.
func splitNames(text string, most int) (names []string, plain bool) {
	count, plain := countNames(text)
	if !plain || count > most {
		return nil, false
	}
	return strings.Split(text, betweenNames), true
}

// countNames returns the number of names in such a text, and whether it needs no decoder.
func countNames[T string | []byte](text T) (count int, plain bool) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '"' {
			if i+len(betweenNames) > len(text) || string(text[i:i+len(betweenNames)]) != betweenNames {
				return 0, false
			}
			count++
			i += len(betweenNames) - 1
		} else if c < ' ' || c > '~' || c == '\\' {
			return 0, false
		}
	}
	return count + 1, true
}

func (a *nodeArguments) decodeNodes(items []json.RawMessage) error {
	return spread(len(items), func(i int) error {
		var id identity
		err := json.Unmarshal(items[i], &id)
		if err == nil && id.Metadata.Name == "" {
			err = errors.New("no name")
		}
		if err != nil {
			return fmt.Errorf("node %d of Nodes: %w", i, err)
		}
		a.names[i], a.whole[i] = id.Metadata.Name, wholeNode{raw: items[i], resourceVersion: id.Metadata.ResourceVersion}
		return nil
	})
}

// spread calls do for 0 to n-1 on all processors: a list with thousands of whole nodes has tens of
// megabytes.
func spread(n int, do func(i int) error) error {
	workers := min(runtime.GOMAXPROCS(0), n)
	failed := make([]error, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := w; i < n && failed[w] == nil; i += workers {
				failed[w] = do(i)
			}
		})
	}
	group.Wait()
	return errors.Join(failed...)
}

// preemptArguments are ExtenderPreemptionArgs with the victims in one form.
type preemptArguments struct {
	pod *corev1.Pod
	// victims are by node. pods has no objects for victims that were sent as UIDs.
	victims map[string]*extenderv1.MetaVictims
	pods    map[string][]*corev1.Pod
}

type wirePreemption struct {
	Pod                   limited[corev1.Pod]
	NodeNameToVictims     limited[map[string]*extenderv1.Victims]
	NodeNameToMetaVictims limited[map[string]*extenderv1.MetaVictims]
}

func decodePreemptArguments(body []byte, l limits) (*preemptArguments, error) {
	wire := wirePreemption{}
	wire.Pod.what, wire.Pod.limit = "Pod", l.pod()
	if l.namesOnly {
		wire.NodeNameToVictims.refused = errNamesOnly
	}
	wire.NodeNameToVictims.what, wire.NodeNameToVictims.limit = "NodeNameToVictims", l.victims()
	wire.NodeNameToMetaVictims.what, wire.NodeNameToMetaVictims.limit = "NodeNameToMetaVictims", l.victims()
	if err := unmarshal(body, &wire); err != nil {
		return nil, err
	}
	whole, named := wire.NodeNameToVictims.value, wire.NodeNameToMetaVictims.value
	switch {
	case !wire.Pod.given:
		return nil, errors.New("no Pod")
	case len(whole) > 0 && len(named) > 0:
		return nil, errors.New("both NodeNameToVictims and NodeNameToMetaVictims")
	}
	a := &preemptArguments{pod: &wire.Pod.value, victims: named, pods: map[string][]*corev1.Pod{}}
	for node, victims := range a.victims {
		if victims == nil {
			return nil, fmt.Errorf("the victims on node %q are null", node)
		}
		for i, victim := range victims.Pods {
			if victim == nil {
				return nil, fmt.Errorf("victim %d on node %q is null", i, node)
			}
		}
	}
	if len(whole) > 0 {
		a.victims = make(map[string]*extenderv1.MetaVictims, len(whole))
	}
	for node, victims := range whole {
		if victims == nil {
			return nil, fmt.Errorf("the victims on node %q are null", node)
		}
		named := &extenderv1.MetaVictims{NumPDBViolations: victims.NumPDBViolations, Pods: []*extenderv1.MetaPod{}}
		for i, pod := range victims.Pods {
			if pod == nil {
				return nil, fmt.Errorf("victim %d on node %q is null", i, node)
			}
			named.Pods = append(named.Pods, &extenderv1.MetaPod{UID: string(pod.UID)})
		}
		a.victims[node], a.pods[node] = named, victims.Pods
	}
	return a, nil
}

func decodeBindArguments(body []byte) (*extenderv1.ExtenderBindingArgs, error) {
	a := &extenderv1.ExtenderBindingArgs{}
	if err := unmarshal(body, a); err != nil {
		return nil, err
	}
	for _, field := range []struct{ name, value string }{{"PodName", a.PodName}, {"PodNamespace", a.PodNamespace}, {
		"Node", a.Node}} {
		if field.value == "" {
			return nil, fmt.Errorf("no %s", field.name)
		}
	}
	return a, nil
}

// unmarshal decodes one document. Unknown fields are ignored: a newer scheduler may send some.
func unmarshal(body []byte, into interface{}) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return errors.New("the body is empty")
	}
	err := json.Unmarshal(body, into)
	if err == nil {
		return nil
	}
	var wrongType *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrongType):
		return fmt.Errorf("field %s: unexpected %s (byte %d)", wrongType.Field, wrongType.Value, wrongType.Offset)
	case errors.As(err, &syntax) && syntax.Offset >= int64(len(body)):
		return fmt.Errorf("the body is truncated after %d bytes", len(body))
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON at byte %d: %w", syntax.Offset, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the body is truncated after %d bytes", len(body))
	}
	return err
}
