// Package openb reads Alibaba's public GPU-cluster trace "openb" (cluster-trace-gpu-v2023 in
// github.com/alibaba/clusterdata): a node list and pod lists in CSV.
//
// A GPU is 1000 of the extended resource [GPUMilli], so that pods that share one fit the sum of a
// node's GPUs; that a share must be of one GPU is not modeled. The GPU model is the node label
// [GPUModel], which pods that want certain models select. The trace does not say on which node a
// pod ran, so that all pods are pending.
package openb

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Names that the simulator of the trace's authors uses too.
const (
	GPUMilli  = "alibabacloud.com/gpu-milli"
	GPUModel  = "alibabacloud.com/gpu-card-model"
	QoS       = "alibabacloud.com/qos"
	Namespace = "openb"
)

// Notes about the objects.
const (
	NodesNote = "openb: every node has room for 110 pods; a GPU is 1000 of the resource " + GPUMilli
	PodsNote  = "openb: all pods are pending, created in the order of the trace"
)

func nodeColumns() []string { return []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"} }

// podColumns returns the columns of a pod list in their order. The authors' lists with more pods
// that need several GPUs have the first requestColumns only.
func podColumns() []string {
	return []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase",
		"creation_time", "deletion_time", "scheduled_time"}
}

const requestColumns = 5

// IsNodes reports whether a file that begins with start is a node list.
func IsNodes(start []byte) bool { return isList(start, nodeColumns()) }

// IsPods reports whether a file that begins with start is a pod list.
func IsPods(start []byte) bool { return isList(start, podColumns()[:requestColumns]) }

func isList(start []byte, columns []string) bool {
	return strings.HasPrefix(strings.TrimPrefix(string(start), "\ufeff"), strings.Join(columns, ","))
}

// Nodes calls do with each node in a list.
func Nodes(r io.Reader, do func(node map[string]any) error) error {
	return eachRow(r, nodeColumns(), len(nodeColumns()), func(row row) error {
		node, err := row.node()
		if err != nil {
			return err
		}
		return do(node)
	})
}

// Pods calls do with the pods' namespace, and with each pod in a list.
func Pods(r io.Reader, do func(object map[string]any) error) error {
	if err := do(namespace()); err != nil {
		return err
	}
	return eachRow(r, podColumns(), requestColumns, func(row row) error {
		pod, err := row.pod()
		if err != nil {
			return err
		}
		return do(pod)
	})
}

func namespace() map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": Namespace}}
}

// row is a row in a list, by column name.
type row map[string]string

// eachRow reads a list with the required first columns, or more of them. It may have other columns
// after all of them.
func eachRow(r io.Reader, columns []string, required int, do func(row) error) error {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	header, err := in.Read()
	if err == nil {
		header[0] = strings.TrimPrefix(header[0], "\ufeff")
	}
	columns = columns[:min(len(columns), max(len(header), required))]
	if err != nil || len(header) < required || !slices.Equal(header[:len(columns)], columns) {
		return problem.Invalidf("", "expected a list with the columns %s", strings.Join(columns, ","))
	}
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return invalidRow(in, err)
		}
		values := row{}
		for i, column := range columns {
			values[column] = strings.Clone(record[i])
		}
		if err := do(values); err != nil {
			return invalidRow(in, err)
		}
	}
}

// invalidRow adds the line to an error about a row's content, or returns the error from reading it.
func invalidRow(in *csv.Reader, err error) error {
	var syntax *csv.ParseError
	var number *strconv.NumError
	switch {
	case errors.As(err, &syntax):
		return problem.Invalidf("", "%w", err)
	case errors.As(err, &number):
		line, _ := in.FieldPos(0)
		return problem.Invalidf("", "line %d: %w", line, err)
	}
	return err
}

// number returns a column that is a number and not negative. An empty one is 0.
func (r row) number(column string) (int64, error) {
	text := r[column]
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 30) // the product of two is an int64
	if err != nil {
		return 0, fmt.Errorf("%s: %w", column, err)
	}
	return int64(n), nil //nolint:gosec // 30 bits
}

// amounts returns CPU and memory quantities, and GPUs unless there are none.
func (r row) amounts(gpus, milliOfEach int64) (map[string]any, error) {
	cpu, err := r.number("cpu_milli")
	if err != nil {
		return nil, err
	}
	memory, err := r.number("memory_mib")
	if err != nil {
		return nil, err
	}
	list := map[string]any{"cpu": fmt.Sprintf("%dm", cpu), "memory": fmt.Sprintf("%dMi", memory)}
	if gpus > 0 {
		list[GPUMilli] = strconv.FormatInt(gpus*milliOfEach, 10)
	}
	return list, nil
}

func (r row) node() (map[string]any, error) {
	gpus, err := r.number("gpu")
	if err != nil {
		return nil, err
	}
	room, err := r.amounts(gpus, 1000)
	if err != nil {
		return nil, err
	}
	room["pods"] = "110"
	labels := map[string]any{"kubernetes.io/hostname": r["sn"], "kubernetes.io/os": "linux"}
	if r["model"] != "" {
		labels[GPUModel] = r["model"]
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": r["sn"], "labels": labels},
		"status": map[string]any{
			"capacity": room, "allocatable": room,
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
		},
	}, nil
}

func (r row) pod() (map[string]any, error) {
	gpus, err := r.number("num_gpu")
	if err != nil {
		return nil, err
	}
	milli, err := r.number("gpu_milli")
	if err != nil {
		return nil, err
	}
	created, err := r.number("creation_time")
	if err != nil {
		return nil, err
	}
	requests, err := r.amounts(gpus, milli)
	if err != nil {
		return nil, err
	}
	spec := map[string]any{
		"schedulerName": "default-scheduler",
		"containers": []any{map[string]any{"name": "main", "image": "openb.invalid/pod:1",
			"resources": map[string]any{"requests": requests, "limits": extended(requests)}}},
	}
	if r["gpu_spec"] != "" {
		spec["affinity"] = map[string]any{"nodeAffinity": models(strings.Split(r["gpu_spec"], "|"))}
	}
	metadata := map[string]any{
		"name": r["name"], "namespace": Namespace, "creationTimestamp": time.Unix(created, 0).UTC().Format(time.RFC3339),
	}
	if r["qos"] != "" {
		metadata["labels"] = map[string]any{QoS: r["qos"]}
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec,
		"status": map[string]any{"phase": "Pending"}}, nil
}

// extended returns the extended resources: the API server requires limits for them.
func extended(requests map[string]any) map[string]any {
	limits := map[string]any{}
	if gpus, ok := requests[GPUMilli]; ok {
		limits[GPUMilli] = gpus
	}
	return limits
}

// models returns the node affinity for a pod that wants a GPU of any given model.
func models(names []string) map[string]any {
	values := make([]any, len(names))
	for i, name := range names {
		values[i] = name
	}
	return map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{
		"nodeSelectorTerms": []any{map[string]any{
			"matchExpressions": []any{map[string]any{"key": GPUModel, "operator": "In", "values": values}},
		}}}}
}
