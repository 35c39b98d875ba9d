// Package served is the server of tools that the bridge offers to agents over MCP: VaultHttpFetch and LocalMemoryRecall. It lets a call
// through when the agent's hook announced that very call as the main agent's (P6), the permission rules or a person allow it, and the
// call could be logged; it taints before it hands anything over. It holds no secret: the vault makes the request. What fails is a denial.
package served
