package adapter

import (
	"errors"

	"k8s.io/client-go/rest"
)

// KubeConfig implements scheduler.Handle.
func (h *Host) KubeConfig() (*rest.Config, error) {
	config := h.handle.KubeConfig()
	if config == nil {
		return nil, errors.New("the scheduler has no kubeconfig")
	}
	return rest.CopyConfig(config), nil
}

func load(s cycleState, key stateKey) (stateData, error) { return s.Read(key) }
func store(s cycleState, key stateKey, data stateData)   { s.Write(key, data) }
func remove(s cycleState, key stateKey)                  { s.Delete(key) }
