package extender

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// nodeArguments are ExtenderArgs, the request of filter and prioritize. Whole nodes are kept as they came, too: what is
// answered is what was sent, fields included that this program does not know.
type nodeArguments struct {
	pod   *corev1.Pod
	names []string
	// whole are the nodes of a request that holds them, nil for one that names them.
	whole []wholeNode
}

type wholeNode struct {
	raw    json.RawMessage
	object *corev1.Node
}

// wireArguments are ExtenderArgs with nodes that are not decoded yet.
type wireArguments struct {
	Pod   *corev1.Pod
	Nodes *struct {
		Items []json.RawMessage `json:"items"`
	}
	NodeNames *[]string
}

func decodeNodeArguments(body []byte) (*nodeArguments, error) {
	var wire wireArguments
	if err := unmarshal(body, &wire); err != nil {
		return nil, err
	}
	switch {
	case wire.Pod == nil:
		return nil, errors.New("there is no Pod")
	case wire.Nodes == nil && wire.NodeNames == nil:
		return nil, errors.New("there are neither NodeNames nor Nodes")
	case wire.Nodes != nil && wire.NodeNames != nil:
		return nil, errors.New("there are both NodeNames and Nodes, so that the form of the answer is not known")
	case wire.NodeNames != nil:
		return &nodeArguments{pod: wire.Pod, names: *wire.NodeNames}, nil
	}
	a := &nodeArguments{pod: wire.Pod, names: make([]string, len(wire.Nodes.Items)), whole: make([]wholeNode, len(wire.Nodes.Items))}
	return a, a.decodeNodes(wire.Nodes.Items)
}

// decodeNodes decodes whole nodes, on all processors: thousands of them are tens of megabytes.
func (a *nodeArguments) decodeNodes(items []json.RawMessage) error {
	workers := min(runtime.GOMAXPROCS(0), len(items))
	failed := make([]error, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := w; i < len(items) && failed[w] == nil; i += workers {
				object := &corev1.Node{}
				err := json.Unmarshal(items[i], object)
				if err == nil && object.Name == "" {
					err = errors.New("it has no name")
				}
				if err != nil {
					failed[w] = fmt.Errorf("node %d of Nodes: %w", i, err)
				}
				a.names[i], a.whole[i] = object.Name, wholeNode{raw: items[i], object: object}
			}
		})
	}
	group.Wait()
	return errors.Join(failed...)
}

// preemptArguments are ExtenderPreemptionArgs with the victims in one form.
type preemptArguments struct {
	pod *corev1.Pod
	// victims are by node. Of those that came as UIDs, pods has no objects.
	victims map[string]*extenderv1.MetaVictims
	pods    map[string][]*corev1.Pod
}

func decodePreemptArguments(body []byte) (*preemptArguments, error) {
	var wire extenderv1.ExtenderPreemptionArgs
	if err := unmarshal(body, &wire); err != nil {
		return nil, err
	}
	switch {
	case wire.Pod == nil:
		return nil, errors.New("there is no Pod")
	case len(wire.NodeNameToVictims) > 0 && len(wire.NodeNameToMetaVictims) > 0:
		return nil, errors.New("there are both NodeNameToVictims and NodeNameToMetaVictims")
	}
	a := &preemptArguments{pod: wire.Pod, victims: wire.NodeNameToMetaVictims, pods: map[string][]*corev1.Pod{}}
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
	if len(wire.NodeNameToVictims) > 0 {
		a.victims = make(map[string]*extenderv1.MetaVictims, len(wire.NodeNameToVictims))
	}
	for node, victims := range wire.NodeNameToVictims {
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
	for _, field := range []struct{ name, value string }{{"PodName", a.PodName}, {"PodNamespace", a.PodNamespace}, {"Node", a.Node}} {
		if field.value == "" {
			return nil, fmt.Errorf("there is no %s", field.name)
		}
	}
	return a, nil
}

// unmarshal reads one document. Fields that are not known are left out: a newer scheduler may send some.
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
		return fmt.Errorf("field %s: a %s is not what belongs there (byte %d)", wrongType.Field, wrongType.Value, wrongType.Offset)
	case errors.As(err, &syntax) && syntax.Offset >= int64(len(body)):
		return fmt.Errorf("the body ends in the middle, after %d bytes", len(body))
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON at byte %d: %w", syntax.Offset, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the body ends in the middle, after %d bytes", len(body))
	}
	return err
}
