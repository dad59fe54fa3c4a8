package ready

// The words that the general rule (general.go) goes by, in lower case, each with the
// kinds that it comes from. They are the words of many controllers, not of one: what a
// single kind says belongs into a rule for it (brine.dev/ready-when, --readiness).

// wellEnds end the type of a condition, or the name of a boolean field, that is true
// when all is well: "ControlPlaneReady", "RemoteSynced".
var wellEnds = words(
	"accepted",     // Gateway, GatewayClass, HTTPRoute
	"applied",      // ClusterResourceSet
	"available",    // APIManager, DeploymentConfig, Prometheus
	"complete",     // Backup (k8s.mariadb.com)
	"completed",    // Snapshot, ResourceBackup (astra.netapp.io)
	"date",         // ApplicationSet ResourcesUpToDate
	"deployed",     // EventBus
	"established",  // Composition
	"healthy",      // ConfigConnector, Shoot
	"installed",    // HelmChart, Provider
	"pass",         // Analysis (metrics.keptn.sh)
	"programmed",   // Gateway
	"promoted",     // Canary
	"ready",        // most
	"reconciled",   // Prometheus
	"refs",         // ResolvedRefs of routes
	"succeeded",    // DataVolume
	"success",      // FlinkDeployment
	"synced",       // SealedSecret, all of Crossplane
	"synchronized", // GrafanaDashboard
	"use",          // readyToUse of snapshots
	"valid",        // DatadogMetric
)

// illWords are words of a condition's type that is true when something is wrong, and
// words that a phase, state or health is made of then.
var illWords = words(
	"aborted",      // Rollout
	"degraded",     // Rollout, CephCluster
	"err",          // CephCluster HEALTH_ERR
	"error",        // Iamrole, HumioAlert ConfigError, CronWorkflow SubmissionError
	"errors",       // Keycloak HasErrors
	"exceeded",     // Rollout ProgressDeadlineExceeded
	"failed",       // AppVault, Jaeger, Product
	"failing",      // ScaledObject
	"failure",      // CephObjectStore, Kiali
	"fallback",     // ScaledObject
	"inconclusive", // AnalysisRun, Experiment
	"invalid",      // Elasticsearch, Rollout InvalidSpec
	"not",          // Kafka NotReady, HumioAlert NotFound, FlinkDeployment DEPLOYED_NOT_READY
	"orphan",       // Product (capabilities.3scale.net)
	"partially",    // ClusterExternalSecret PartiallyReady
	"pressure",     // Node MemoryPressure
	"red",          // Elasticsearch, Logstash
	"rejected",     // VirtualService (gateway.solo.io)
	"remaining",    // Namespace NamespaceContentRemaining
	"stalled",      // of kstatus
	"unavailable",  // MachineDeployment
	"unhealthy",    // of the built-in probes
	"unknown",      // Tenant (minio.min.io)
	"warn",         // CephCluster HEALTH_WARN
	"warning",      // VirtualService (gateway.solo.io)
)

// underWay are words of a phase, state or health that is still on its way. So is every
// word in "-ing" but lasting: Creating, ScalingUp, "Waiting for Pods".
var underWay = words(
	"progress", // ClickHouseInstallation InProgress, ProxyConfigPromote In-progress
	"yellow",   // Elasticsearch, Beat
)

// lasting are words in "-ing" that say that all is well.
var lasting = words("archiving", "existing", "listening", "missing", "monitoring", "nothing", "protecting", "running", "serving", "watching")

// toItsEnd end the names of kinds that run to an end: there Running is under way.
var toItsEnd = words(
	"analysis", "experiment", "job", "run", // argoproj.io, BroadcastJob
	"backup", "restore", "snapshot", "task", "workflow", // astra.netapp.io, KeptnTask
)

// stateEnds end the name of a field that holds one word about the whole object:
// overallStatus, currentState, PostgresClusterStatus.
var stateEnds = words("health", "phase", "stage", "state", "status")

// elsewhere begin the name of a field that is not about what is now.
var elsewhere = words("desired", "expected", "last", "old", "previous", "spec", "target")

func words(all ...string) map[string]bool {
	set := make(map[string]bool, len(all))
	for _, w := range all {
		set[w] = true
	}
	return set
}
