//go:build ignore

package adapter

import (
	"errors"
	"strings"

	"k8s.io/client-go/rest"
)

// KubeConfig implements scheduler.Handle. These releases do not pass their kubeconfig to plugins:
// the result uses the connection of their client.
func (h *Host) KubeConfig() (*rest.Config, error) {
	client, ok := h.handle.ClientSet().CoreV1().RESTClient().(*rest.RESTClient)
	if !ok || client == nil || client.Client == nil {
		return nil, errors.New("the scheduler's client has no connection to share")
	}
	server := client.Get().URL()
	address := server.Scheme + "://" + server.Host + strings.TrimSuffix(server.Path, "/api/v1")
	return &rest.Config{Host: address, Transport: client.Client.Transport, Timeout: client.Client.Timeout}, nil
}

// Before 1.22 the callers of CycleState must lock it.

func load(s cycleState, key stateKey) (stateData, error) {
	s.RLock()
	defer s.RUnlock()
	return s.Read(key)
}

func store(s cycleState, key stateKey, data stateData) {
	s.Lock()
	defer s.Unlock()
	s.Write(key, data)
}

func remove(s cycleState, key stateKey) {
	s.Lock()
	defer s.Unlock()
	s.Delete(key)
}
