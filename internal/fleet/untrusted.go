package fleet

import (
	"errors"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// parseUntrusted reads a kubeconfig from a Secret's content, which other users may write, and
// refuses it if it would run a program or read a file on this machine. Its errors quote nothing
// from the content.
func parseUntrusted(text []byte, allowExec bool) (*clientcmdapi.Config, error) {
	kubeconfig, err := clientcmd.Load(text)
	if err != nil {
		return nil, errors.New("it is not a kubeconfig")
	}
	kubeconfig, err = minify(kubeconfig, kubeconfig.CurrentContext)
	if err != nil {
		return nil, err
	}
	name := kubeconfig.CurrentContext
	return kubeconfig, checkUntrusted(kubeconfig.Clusters[name], kubeconfig.AuthInfos[name], allowExec)
}

// checkUntrusted refuses an untrusted kubeconfig's cluster and user if they name files or programs
// on this machine.
func checkUntrusted(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo, allowExec bool) error {
	switch {
	case cluster.CertificateAuthority != "", user.ClientCertificate != "", user.ClientKey != "", user.TokenFile != "":
		return errors.New("the kubeconfig names a file of this machine, which it must not read")
	case user.AuthProvider != nil:
		return errors.New("the kubeconfig has an auth-provider, which is not supported")
	case user.Exec != nil && !allowExec:
		return problem.Errorf("allow the programs that these Secrets name with --allow-exec, or use --from contexts",
			"the kubeconfig names a credential plugin: a program that a Secret must not run")
	case user.Exec != nil:
		user.Exec.InteractiveMode = clientcmdapi.NeverExecInteractiveMode
	}
	return nil
}
