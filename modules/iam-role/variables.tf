variable "buckets" {
  description = <<-EOT
    Buckets the containers may use. The map key is arbitrary: it names the policy statements.
    - `name`: bucket name.
    - `access`: `read` (list and get), `write` (read and put) or `sync` (write and delete, which
      SageMaker's checkpoint synchronisation needs).
    - `prefixes`: key prefixes without wildcards; empty means the whole bucket.
  EOT
  type = map(object({
    name     = string
    access   = optional(string, "read")
    prefixes = optional(set(string), [])
  }))
  default  = {}
  nullable = false

  validation {
    condition = alltrue([
      for bucket in var.buckets : can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", bucket.name))
    ])
    error_message = "buckets[*].name must be a bucket name of 3 to 63 characters, not an ARN or a URI."
  }

  validation {
    condition     = alltrue([for bucket in var.buckets : contains(["read", "write", "sync"], bucket.access)])
    error_message = "buckets[*].access must be read, write or sync."
  }

  validation {
    condition = alltrue(flatten([
      for bucket in var.buckets : [for prefix in bucket.prefixes : can(regex("^[^/*?$][^*?$]*$", prefix))]
    ]))
    error_message = "buckets[*].prefixes must not be empty, start with / or contain *, ? or $; leave the set empty to mean the whole bucket."
  }

  validation {
    condition     = length(distinct([for key in keys(var.buckets) : lower(replace(key, "/[^A-Za-z0-9]/", ""))])) == length(var.buckets)
    error_message = "buckets: keys must differ in their letters and digits, because they name policy statements."
  }
}

variable "job_policies" {
  description = "Make policies for roles of single jobs too: what all jobs need beside their data."
  type        = bool
  default     = false
  nullable    = false
}

variable "kms_key_arns" {
  description = "Keys for input, output and volumes. The map key is arbitrary; the value may be unknown at plan. Empty: no KMS statement."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for arn in values(var.kms_key_arns) : can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/.+$", arn))])
    error_message = "kms_key_arns must hold key ARNs: IAM matches keys, so an alias ARN here would grant nothing."
  }
}

variable "managed_policy_arns" {
  description = "Further policies to attach, for what a team's code needs beyond training. The map key is arbitrary."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for arn in values(var.managed_policy_arns) : can(regex("^arn:aws[a-z-]*:iam::(aws|[0-9]{12}):policy/.+$", arn))])
    error_message = "managed_policy_arns must hold policy ARNs."
  }

  validation {
    condition     = !var.job_policies || length(setintersection(["jobs", "job-keys"], keys(var.managed_policy_arns))) == 0
    error_message = "managed_policy_arns: jobs and job-keys are the keys of the policies made for jobs; choose others."
  }

  validation {
    condition = alltrue([
      for arn in values(var.managed_policy_arns) : !can(regex("policy/(AdministratorAccess|AmazonSageMakerFullAccess|AmazonS3FullAccess)$", arn))
    ])
    error_message = "managed_policy_arns: AdministratorAccess, AmazonSageMakerFullAccess and AmazonS3FullAccess would undo the scoping of this role; list buckets and repositories instead."
  }
}

variable "metric_namespaces" {
  description = "CloudWatch namespaces the containers may put metrics into."
  type        = set(string)
  default     = ["/aws/sagemaker/ProcessingJobs", "/aws/sagemaker/TrainingJobs"]
  nullable    = false

  validation {
    condition     = alltrue([for namespace in var.metric_namespaces : can(regex("^[^*?]{1,255}$", namespace))])
    error_message = "metric_namespaces must be 1 to 255 characters each, without wildcards."
  }
}

variable "name" {
  description = "Last part of the role name, after the prefix."
  type        = string
  default     = "execution"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9](-?[a-z0-9])*$", var.name))
    error_message = "name must be lower-case letters, digits and single hyphens."
  }

  validation {
    condition     = length("${var.context.prefix}-${var.name}") <= 64
    error_message = "name: prefix and name together may have at most 64 characters (IAM role names)."
  }
}

variable "network" {
  description = <<-EOT
    Network of the jobs. With subnets, SageMaker attaches network interfaces to them in the name of this
    role; without, the role gets no EC2 permission at all.
    - `subnet_ids`, `security_group_ids`: those the jobs use.
  EOT
  type = object({
    subnet_ids         = optional(list(string), [])
    security_group_ids = optional(list(string), [])
  })
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for id in var.network.subnet_ids : can(regex("^subnet-[0-9a-f]+$", id))])
    error_message = "network.subnet_ids must be subnet ids (subnet-...)."
  }

  validation {
    condition     = alltrue([for id in var.network.security_group_ids : can(regex("^sg-[0-9a-f]+$", id))])
    error_message = "network.security_group_ids must be security group ids (sg-...)."
  }

  validation {
    condition     = (length(var.network.subnet_ids) == 0) == (length(var.network.security_group_ids) == 0)
    error_message = "network: give subnet_ids and security_group_ids together, or neither."
  }
}

variable "permissions_boundary_arn" {
  description = "Permissions boundary of the role; null for none."
  type        = string
  default     = null

  validation {
    condition     = var.permissions_boundary_arn == null || can(regex("^arn:aws[a-z-]*:iam::(aws|[0-9]{12}):policy/.+$", var.permissions_boundary_arn))
    error_message = "permissions_boundary_arn must be a policy ARN."
  }
}

variable "repository_arns" {
  description = "ECR repositories whose images the jobs may pull. A wildcard in the repository name is allowed, one in the account is not. A list, so that its length is known when an ARN is not."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for arn in var.repository_arns : can(regex("^arn:aws[a-z-]*:ecr:[a-z0-9-]+:[0-9]{12}:repository/.+$", arn))])
    error_message = "repository_arns must hold ECR repository ARNs with a Region and a twelve-digit account."
  }
}
