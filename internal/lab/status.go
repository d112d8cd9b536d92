//go:build linux

package lab

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Status is the status of a lab.
type Status struct {
	Name    string    `json:"name"`
	Layout  string    `json:"layout"`
	Release string    `json:"release"`
	Created time.Time `json:"created"`
	// Complete is set if Up has finished.
	Complete bool `json:"complete"`
	// Server is the URL of the API server from the machine, Version its version; "" if it does not
	// answer, in which case Problem is the reason.
	Server  string `json:"server,omitempty"`
	Version string `json:"version,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Node is the name of the Node object of the control-plane node.
	Node      string    `json:"node,omitempty"`
	NodeReady bool      `json:"nodeReady"`
	Workers   Workers   `json:"workers"`
	Processes []Process `json:"processes"`
	// Kubeconfig works on the machine; Root is the node's file system.
	Kubeconfig string `json:"kubeconfig"`
	Root       string `json:"root"`
}

// Workers counts the fake nodes.
type Workers struct {
	Total int `json:"total"`
	Ready int `json:"ready"`
}

// Process is a process of the node that does not run in a container.
type Process struct {
	Name string `json:"name"`
	// PID is 0 if the process is not running.
	PID int    `json:"pid,omitempty"`
	Log string `json:"log"`
}

// Status inspects the processes and queries the API server. An incomplete or broken lab has a
// status too; only an unreadable machine is an error.
func (l *Lab) Status(ctx context.Context) (*Status, error) {
	s := &Status{
		Name: l.Name(), Layout: l.Layout(), Created: l.state.Created, Complete: l.state.Ready,
		Kubeconfig: l.Kubeconfig(), Root: l.Root(),
	}
	if !l.state.Release.IsZero() {
		s.Release = l.state.Release.String()
	}
	g, err := newGroup(l.dir)
	if err != nil {
		return nil, err
	}
	running, err := g.processes()
	if err != nil {
		return nil, err
	}
	names := []string{holder, "etcd", "containerd", "kubelet", "kube-proxy"}
	if l.state.Nodes > 0 {
		names = append(names, "kwok")
	}
	for _, name := range names {
		s.Processes = append(s.Processes, Process{Name: name, PID: l.pid(name, running), Log: l.logFile(name)})
	}
	if err := l.askServer(ctx, s); err != nil {
		s.Problem = err.Error()
	}
	return s, nil
}

func (l *Lab) askServer(ctx context.Context, s *Status) error {
	cfg, err := l.restConfig()
	if err != nil {
		return err
	}
	cfg.Timeout = 5 * time.Second
	s.Server = cfg.Host
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("connect to lab %s: %w", l.Name(), err)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask the API server: %w", err)
	}
	s.Version = version.GitVersion
	name, err := l.NodeName()
	if err != nil {
		return err
	}
	s.Node = name
	n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("ask for node %s: %w", name, err)
	}
	if err := nodeReady(n); err != nil {
		return err
	}
	s.NodeReady = true
	s.Workers.Ready, s.Workers.Total, err = l.workersReady(ctx, client)
	return err
}

func (l *Lab) workersReady(ctx context.Context, client kubernetes.Interface) (ready, total int, err error) {
	if l.state.Nodes == 0 {
		return 0, 0, nil
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: workerSelector, ResourceVersion: "0"})
	if err != nil {
		return 0, 0, fmt.Errorf("list workers: %w", err)
	}
	for i := range list.Items {
		if nodeReady(&list.Items[i]) == nil {
			ready++
		}
	}
	return ready, len(list.Items), nil
}
