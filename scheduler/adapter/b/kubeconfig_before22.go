//go:build pmksched

package b

import (
	"errors"
	"strings"

	"k8s.io/client-go/rest"
)

// KubeConfig implements scheduler.Handle. These releases keep their kubeconfig to themselves, so it is
// one that uses the connection of the client they give.
func (h *Host) KubeConfig() (*rest.Config, error) {
	client, ok := h.handle.ClientSet().CoreV1().RESTClient().(*rest.RESTClient)
	if !ok || client == nil || client.Client == nil {
		return nil, errors.New("the scheduler's client has no connection to share")
	}
	server := client.Get().URL()
	address := server.Scheme + "://" + server.Host + strings.TrimSuffix(server.Path, "/api/v1")
	return &rest.Config{Host: address, Transport: client.Client.Transport, Timeout: client.Client.Timeout}, nil
}
