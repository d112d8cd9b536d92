package kubeapi

import (
	"context"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"
)

// warningCode is the only code in a Warning header that API servers send (RFC 9110, miscellaneous
// persistent warning).
const warningCode = 299

// WarningLogger returns a handler that logs the API server's warnings (a deprecated API, a pod
// security violation). A nil log is silent.
func WarningLogger(log *zap.Logger) rest.WarningHandlerWithContext {
	if log == nil {
		log = zap.NewNop()
	}
	return warningLogger{log: log}
}

type warningLogger struct{ log *zap.Logger }

func (w warningLogger) HandleWarningHeaderWithContext(_ context.Context, code int, _ string, text string) {
	if code == warningCode && text != "" {
		w.log.Warn("the API server warns", zap.String("warning", text))
	}
}
