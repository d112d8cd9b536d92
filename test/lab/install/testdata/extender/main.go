// Command extender is a scheduler extender as tutorials show it: it reads the complete nodes of a
// request, without a check that there are any, and accepts those without the label forbidden.
package main

import (
	"encoding/json"
	"log"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

func main() {
	http.HandleFunc("/scheduler/filter", func(w http.ResponseWriter, r *http.Request) {
		var args extenderv1.ExtenderArgs
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		result := extenderv1.ExtenderFilterResult{Nodes: &corev1.NodeList{}, FailedNodes: extenderv1.FailedNodesMap{}}
		for _, node := range args.Nodes.Items {
			if _, forbidden := node.Labels["forbidden"]; forbidden {
				result.FailedNodes[node.Name] = "the node is forbidden"
				continue
			}
			result.Nodes.Items = append(result.Nodes.Items, node)
		}
		if err := json.NewEncoder(w).Encode(result); err != nil {
			log.Print(err)
		}
	})
	log.Fatal(http.ListenAndServe(":8888", nil))
}
