package cluster

import (
	"context"
	"fmt"
	"strconv"
)

// maxLog is how many bytes of a log are read: a line may be of any length.
const maxLog = 64 << 10

// Logs reads the last lines of a container's log; of its previous run if so.
// It asks once: a kubelet that does not answer is no reason to wait.
func (c *Client) Logs(ctx context.Context, namespace, pod, container string, previous bool, lines int64) (string, error) {
	result := c.raw.Get().AbsPath("/api/v1/namespaces", namespace, "pods", pod, "log").
		Param("container", container).Param("previous", strconv.FormatBool(previous)).
		Param("tailLines", strconv.FormatInt(lines, 10)).
		Param("limitBytes", strconv.Itoa(maxLog)).Do(ctx)
	text, _ := result.Raw() // its error lacks what the server said
	if err := result.Error(); err != nil {
		return "", fmt.Errorf("read the log of container %s of pod %s/%s: %w", container, namespace, pod, err)
	}
	return string(text), nil
}
