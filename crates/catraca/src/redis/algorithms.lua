-- The list of algorithms, by their numbers in the batch, which are those of their cells in core; a
-- test compares. Each has a table of functions, created when the first row needs it:
--   read(row)              reads the terms from the batch
--   load(row, now)         loads the counter and sets row.now, row.free
--   charge(row, units)     charges units, returns how many
--   figures(row)           fits_at and full_at, both instants
--   refund(row, at, units) gives back units that were charged at an instant, returns how many
--   count_denied(row), finish(row)  only where the algorithm needs them
--   give_back(row)         ends the row's lease, only if a check takes one lease at any cost
-- `reconcile` of the bucket and `strike` of the sliding window are described in their files.

local bucket, window, fixed, leases

local function meter_of(kind)
  if kind == 1 then
    bucket = bucket or make_bucket()
    return bucket
  elseif kind == 2 then
    window = window or make_window()
    return window
  elseif kind == 3 then
    fixed = fixed or make_fixed()
    return fixed
  elseif kind == 4 then
    leases = leases or make_leases()
    return leases
  end
  error('CATRACA unknown algorithm ' .. kind, 0)
end
