package adapter

func reject(p waitingPod, plugin, message string) { p.Reject(plugin, message) }
